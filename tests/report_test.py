"""hpqf report: the page as a browser sees it."""
import html
import json
import re
import shutil
import subprocess
import time
from html.parser import HTMLParser

import pytest
from report_runs import LAYERS, REASONS, audit, audit_rows, effective, make_run, plan, step_lines

VOID = {"meta", "link", "br", "wbr", "img", "path"}


@pytest.fixture(scope="session")
def browser():
    path = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("NO BROWSER: the page was not looked at (apt install chromium)")
    return path


def run_browser(browser, tmp_path, url, *options):
    return subprocess.run(
        [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr", "--allow-file-access-from-files",
         "--disable-component-update", "--no-first-run", f"--user-data-dir={tmp_path / 'profile'}", *options, url],
        capture_output=True, text=True, timeout=180)


def look(browser, tmp_path, page, script, width=360, height=800):
    """What `script`, a function of the page's window, returns in a frame `width` wide; and what the console said."""
    wrapper = tmp_path / "wrapper.html"
    wrapper.write_text(f"""<body style="margin:0"><iframe src="{page.as_uri()}" style="border:0;width:{width}px;height:{height}px"></iframe>
<pre id="out"></pre><script>onload = () => {{
  const inner = document.querySelector('iframe').contentWindow;
  inner.addEventListener('error', event => console.error(event.message));
  document.getElementById('out').textContent = 'OUT' + JSON.stringify(({script})(inner)) + 'END';
}}</script>""")
    run = run_browser(browser, tmp_path, wrapper.as_uri(), "--dump-dom", "--virtual-time-budget=5000", f"--window-size=1400,{height}")
    found = re.search(r"OUT(.*)END</pre>", run.stdout, re.S)
    assert found, run.stderr[-2000:]
    return json.loads(html.unescape(found[1])), [line for line in run.stderr.splitlines() if ":CONSOLE" in line]


class Outline(HTMLParser):
    """Whether elements close in order, and the ids there are."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.wrong, self.links = [], [], [], []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if tag == "a":
            self.links.append(attributes["href"])
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        assert tag in VOID, tag

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append((tag, self.getpos()))


def page_of(hpqf, run, *options):
    result = hpqf("report", run, "--open", "no", *options)
    assert result.returncode == 0, result.stderr
    return result


def test_page_is_well_formed_and_reachable(hpqf, tmp_path):
    run, other = make_run(tmp_path / "run"), make_run(tmp_path / "other", seed=2, loss_shift=0.1)
    out = tmp_path / "page.html"
    for options in ((), ("--compare", other)):
        page_of(hpqf, run, "--out", out, *options)
        outline = Outline()
        outline.feed(out.read_text())
        assert outline.wrong == [] and outline.open == []
        assert len(outline.ids) == len(set(outline.ids))
        assert {link[1:] for link in outline.links} <= set(outline.ids)
        assert {"summary", "curves", "share", "plan", "effective", "history", "time", "cost", "alerts"} <= set(outline.ids)
    text = out.read_text()
    for part in ("91.40 %", "compared: 90.40 %", "fp16: this CPU multiplies it 14 times slower", "12 overflows in 100 steps",
                 "the loss is not finite", "7 skipped (0.4 %)", "training loss, compared run"):
        assert part in text, part


@pytest.mark.parametrize("width", [360, 390, 1280])
def test_no_errors_and_no_sideways_scroll(hpqf, browser, tmp_path, width):
    run = make_run(tmp_path / "run")
    evil = ("a" * 120 + ".<b>x</b>", "T" * 80, "linear", "bf16", "bf16")
    (run / "plan.json").write_text(json.dumps(plan([evil, *LAYERS], REASONS)))
    page_of(hpqf, run)
    seen, console = look(browser, tmp_path, run / "report.html", """w => {
        const d = w.document, wide = [];
        for (const e of d.querySelectorAll('section, .tile, .chart, .legend, h1, h2, .note, p, .bar'))
          if (e.getBoundingClientRect().right > w.innerWidth + 1) wide.push(e.className || e.tagName);
        return {scroll: d.documentElement.scrollWidth, width: w.innerWidth, wide, bold: d.querySelectorAll('#matrix b').length};
    }""", width=width)
    assert console == []
    assert seen["width"] == width and seen["scroll"] <= width and seen["wide"] == []
    assert seen["bold"] == 0, "a layer's name is text"


def test_labels_do_not_overlap(hpqf, browser, tmp_path):
    run = make_run(tmp_path / "run", steps=123457 // 20)
    page_of(hpqf, run)
    for width in (360, 1280):
        overlaps, _ = look(browser, tmp_path, run / "report.html", """w => {
            const bad = [];
            for (const box of w.document.querySelectorAll('.xlabels, .ylabels')) {
              const r = [...box.children].map(e => e.getBoundingClientRect()).filter(b => b.width > 0);
              for (let i = 0; i < r.length; ++i) for (let j = 0; j < i; ++j)
                if (r[i].left < r[j].right && r[j].left < r[i].right && r[i].top < r[j].bottom && r[j].top < r[i].bottom)
                  bad.push(box.textContent);
            }
            return bad;
        }""", width=width)
        assert overlaps == []


def test_a_tap_says_why(hpqf, browser, tmp_path):
    run = make_run(tmp_path / "run")
    page_of(hpqf, run)
    texts, console = look(browser, tmp_path, run / "report.html", """w => {
        const d = w.document, tip = d.getElementById('tip'), out = [];
        const cell = [...d.querySelectorAll('#matrix tbody tr')].find(r => r.cells[0].textContent === 'blocks.0.attention.proj').cells[1];
        cell.click();
        out.push(tip.hidden ? '' : tip.textContent);
        const area = d.querySelector('#chart-loss .area'), box = area.getBoundingClientRect();
        area.dispatchEvent(new w.PointerEvent('pointermove', {clientX: box.left + box.width / 2, clientY: box.top + 5}));
        out.push(tip.textContent, d.querySelector('#chart-loss .cross').hidden);
        const first = d.querySelector('#matrix td[tabindex]');
        first.focus();
        first.dispatchEvent(new w.KeyboardEvent('keydown', {key: 'ArrowDown', bubbles: true}));
        out.push(d.activeElement.parentNode.cells[0].textContent);
        return out;
    }""", width=390)
    assert console == []
    assert "requested fp16, effective fp32, native" in texts[0] and "14 times slower" in texts[0] and REASONS["fp16"] in texts[0]
    step = int(re.search(r"step ([\d,]+)", texts[1])[1].replace(",", ""))
    assert 990 <= step <= 1010 and "smoothed" in texts[1] and texts[2] is False
    assert texts[3] == LAYERS[1][0]


def test_text_has_contrast_in_both_themes(hpqf, browser, tmp_path):
    run = make_run(tmp_path / "run")
    page_of(hpqf, run)
    for theme in ("light", "dark"):
        page = tmp_path / f"{theme}.html"
        text = (run / "report.html").read_text()
        # The browser's own theme is that of its machine: force one by taking the condition away.
        page.write_text(text.replace("(prefers-color-scheme:dark)", "all" if theme == "dark" else "not all"))
        low, _ = look(browser, tmp_path, page, """w => {
            const d = w.document, bad = new Set();
            const rgb = c => c.match(/[\\d.]+/g).map(Number);
            const lum = c => { const l = c.slice(0, 3).map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
                               return 0.2126 * l[0] + 0.7152 * l[1] + 0.0722 * l[2]; };
            const behind = e => { for (; e; e = e.parentElement) { const c = rgb(w.getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
            for (const e of d.querySelectorAll('h1,h2,h3,p,td,th,dt,dd b,small,li,a,summary,span,.badge')) {
              if (!e.textContent.trim() || e.closest('.hidden')) continue;
              const a = lum(rgb(w.getComputedStyle(e).color)), b = lum(behind(e));
              const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
              if (ratio < 4.5) bad.add(`${e.tagName}.${e.className} ${ratio.toFixed(2)}`);
            }
            return [...bad];
        }""", width=1280)
        assert low == [], theme


def test_killed_empty_and_foreign_folders(hpqf, tmp_path):
    run = make_run(tmp_path / "run", rich=False)
    for name in ("audit.json", "result.json"):
        (run / name).unlink()
    with open(run / "metrics.jsonl", "a") as file:
        file.write('{"step":2001,"lo')
    result = page_of(hpqf, run)
    assert "torn" in result.stdout and "audit.json is missing" in result.stdout
    assert "Last training loss" in (run / "report.html").read_text()

    empty = tmp_path / "empty"
    empty.mkdir()
    for command in (("report", empty, "--open", "no"), ("report", tmp_path / "none", "--open", "no"), ("report", run, "--compare", empty, "--open", "no")):
        result = hpqf(*command)
        assert result.returncode == 2 and "asked:" in result.stderr and "to do:" in result.stderr
    assert list(empty.iterdir()) == []
    result = hpqf("report", run, "--open", "no", "--out", tmp_path / "no" / "such" / "folder.html")
    assert result.returncode == 2 and "folder.html" in result.stderr
    assert hpqf("report", run, "--open", "perhaps").returncode == 2


def test_a_million_steps_in_bounded_time_and_memory(program, tmp_path):
    """1,000,000 steps (0.3 GB) and 1,000 layers: the page stays under 2 MB and memory does not follow the file."""
    run = tmp_path / "run"
    run.mkdir()
    lines = list(step_lines(1000, skip_every=100))
    with open(run / "metrics.jsonl", "w") as file:
        for block in range(1000):
            file.writelines(re.sub(r'"step": (\d+)', lambda m: f'"step": {int(m[1]) + 1000 * block}', line) + "\n" for line in lines)
    layers = [(f"encoder.layers.{i}.attention.self.query", "Linear", "linear", "int8", "int12") for i in range(1000)]
    reasons = {"int8": "lowest time that keeps 30 dB"}
    (run / "plan.json").write_text(json.dumps(plan(layers, reasons)))
    rows = audit_rows(layers, effective, 0.01)
    (run / "audit.json").write_text(json.dumps(audit(rows, 10**6, 1000)))
    begin = time.monotonic()
    code = ("import resource, subprocess, sys\n"
            "r = subprocess.run(sys.argv[1:], capture_output=True, text=True)\n"
            "print(r.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, r.stderr)")
    result = subprocess.run(["python3", "-c", code, program, "report", str(run), "--open", "no"], capture_output=True, text=True, timeout=300)
    seconds = time.monotonic() - begin
    returned, kilobytes = map(int, result.stdout.split()[:2])
    size = (run / "report.html").stat().st_size
    print(f"\n{seconds:.1f} s, {kilobytes / 1024:.0f} MiB, page {size / 2**20:.2f} MiB")
    assert returned == 0, result.stdout
    assert size < 2 * 2**20
    # The program itself maps torch; what counts is that memory does not hold the file.
    small = make_run(tmp_path / "small")
    result = subprocess.run(["python3", "-c", code, program, "report", str(small), "--open", "no"], capture_output=True, text=True, timeout=300)
    assert kilobytes - int(result.stdout.split()[1]) < 100 * 1024
    assert seconds < 120
