#include "hpqf/observe/report/page.h"

namespace hpqf::observe {

// What pops up under the pointer: the values of a chart and the reason of a cell. Texts go in as text, never as HTML.
std::string_view page_script() {
  return R"js(
(function () {
  'use strict';
  var tip = document.getElementById('tip');
  function show(text, x, y) {
    tip.textContent = text;
    tip.hidden = false;
    var w = tip.offsetWidth, h = tip.offsetHeight;
    tip.style.left = Math.max(8, Math.min(x + 16, innerWidth - w - 8)) + 'px';
    tip.style.top = (y + 20 + h > innerHeight ? Math.max(8, y - h - 14) : y + 18) + 'px';
  }
  function hide() { tip.hidden = true; }
  function grouped(n) { return String(n).replace(/\B(?=(\d{3})+$)/g, ','); }

  document.querySelectorAll('.chart').forEach(function (chart) {
    var area = chart.querySelector('.area'), cross = chart.querySelector('.cross');
    var data = JSON.parse(chart.querySelector('script').textContent);
    var low = data.x[0], high = data.x[1];
    function middle(p) { return p.length > 1 ? (p[0] + p[1]) / 2 : p[0]; }
    function nearest(points, x) {
      var a = 0, b = points.length - 1;
      while (b - a > 1) { var m = (a + b) >> 1; if (middle(points[m]) < x) a = m; else b = m; }
      return Math.abs(middle(points[a]) - x) <= Math.abs(middle(points[b]) - x) ? a : b;
    }
    function move(event) {
      var box = area.getBoundingClientRect();
      var x = low + (high - low) * (event.clientX - box.left) / box.width;
      var lines = [];
      data.d.c.forEach(function (curve) {
        if (!curve.p.length) return;
        var i = nearest(curve.p, x), p = curve.p[i];
        if (!lines.length) {
          lines.push('step ' + grouped(p[0]) + (p.length > 1 ? ' to ' + grouped(p[1]) : ''));
          cross.style.left = (high > low ? 100 * (middle(p) - low) / (high - low) : 50) + '%';
        }
        lines.push(curve.n + (p.length > 1 ? ', mean: ' : ': ') + curve.v[i]);
        if (curve.s.length && curve.s[i] !== null) lines.push(curve.n + ', smoothed: ' + curve.s[i]);
      });
      if (!lines.length) return;
      cross.hidden = false;
      show(lines.join('\n'), event.clientX, event.clientY);
    }
    area.addEventListener('pointermove', move);
    area.addEventListener('pointerdown', move);
    area.addEventListener('pointerleave', function () { cross.hidden = true; hide(); });
  });

  var matrix = document.getElementById('matrix'), texts = document.getElementById('texts');
  if (!matrix || !texts) return;
  texts = JSON.parse(texts.textContent);
  function explain(cell) {
    var row = cell.parentNode, d = cell.dataset;
    var role = matrix.tHead.rows[0].cells[cell.cellIndex].textContent;
    var planned = cell.classList.contains('planned'), shown = d.b || cell.firstChild.textContent;
    var lines = [row.cells[0].textContent + ' · ' + role];
    lines.push(planned ? 'requested ' + shown + '; did not run' :
      'requested ' + (d.q || shown) + ', effective ' + shown + (cell.classList.contains('emulated') ? ', emulated' : ', native'));
    if ('i' in d) lines.push('implementation: ' + texts[d.i] + ('m' in d ? ' for most of the work, others for the rest' : ''));
    if (texts[row.dataset.w]) lines.push('plan: ' + texts[row.dataset.w]);
    if ('r' in d) lines.push('why: ' + texts[d.r]);
    return lines.join('\n');
  }
  function cellOf(event) { return event.target.closest('td[class^=f-]'); }
  matrix.addEventListener('pointerover', function (event) {
    var cell = cellOf(event);
    if (cell) show(explain(cell), event.clientX, event.clientY); else hide();
  });
  matrix.addEventListener('pointerleave', hide);
  matrix.addEventListener('click', function (event) {
    var cell = cellOf(event);
    if (cell) show(explain(cell), event.clientX, event.clientY);
  });
  // The keyboard walks the cells: one of them takes part in the tab order.
  var first = matrix.querySelector('td[class^=f-]');
  if (first) first.tabIndex = 0;
  matrix.addEventListener('focusin', function (event) {
    var cell = cellOf(event);
    if (cell) { var box = cell.getBoundingClientRect(); show(explain(cell), box.left, box.bottom - 10); }
  });
  matrix.addEventListener('focusout', hide);
  matrix.addEventListener('keydown', function (event) {
    var cell = cellOf(event), row = cell && cell.parentNode, next = null;
    if (event.key === 'Escape') { hide(); return; }
    if (!cell) return;
    if (event.key === 'ArrowRight') next = cell.nextElementSibling;
    if (event.key === 'ArrowLeft') next = cell.previousElementSibling;
    if (event.key === 'ArrowDown') next = row.nextElementSibling && row.nextElementSibling.cells[cell.cellIndex];
    if (event.key === 'ArrowUp') next = row.previousElementSibling && row.previousElementSibling.cells[cell.cellIndex];
    if (!next || !/^f-/.test(next.className)) return;
    cell.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
    event.preventDefault();
  });
})();
)js";
}

}  // namespace hpqf::observe
