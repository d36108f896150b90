#include "hpqf/observe/report/page.h"

namespace hpqf::observe {

// Formats: one hue each, cool for floating point and warm for integers, paler with more bits; the name stands in every
// cell, so no reader depends on colours. Text on them has a contrast of at least 4.5 in both themes.
std::string_view page_style() {
  return R"css(
:root{color-scheme:light dark;--bg:#f6f7f9;--card:#fff;--ink:#1b2330;--soft:#5a6678;--line:#dde2ea;--grid:#e8ecf2;
--accent:#1f5fbf;--second:#b3541e;--mark:#c22f2f;--good:#1d7a46;--hatch:rgba(0,0,0,.16);
--c-fp32:#dce1e9;--c-tf32:#cfdae8;--c-bf16:#bcd7f7;--c-fp16:#a9e3e6;--c-fp8_e4m3:#cdc2f6;--c-fp8_e5m2:#e6bdf1;
--c-int16:#dcebb5;--c-int12:#c3e29c;--c-int8:#ffdf9b;--c-int7:#ffc98f;--c-int4:#ffb3a3;--c-none:#eef0f4;
--p-forward:#3b7dd8;--p-dgrad:#7d5bd0;--p-wgrad:#b98be0;--p-backward:#8a97ab}
@media (prefers-color-scheme:dark){:root{--bg:#11151b;--card:#191f28;--ink:#e6eaf1;--soft:#9aa7ba;--line:#2c3542;
--grid:#262e3a;--accent:#74aefc;--second:#f0985c;--mark:#ff7b72;--good:#5fcf8e;--hatch:rgba(255,255,255,.2);
--c-fp32:#39424f;--c-tf32:#3a4a60;--c-bf16:#234b7d;--c-fp16:#17565a;--c-fp8_e4m3:#463a86;--c-fp8_e5m2:#663572;
--c-int16:#45541f;--c-int12:#325420;--c-int8:#6b4c09;--c-int7:#75410e;--c-int4:#7a3022;--c-none:#262d38;
--p-forward:#5b99ee;--p-dgrad:#9a7df0;--p-wgrad:#c9a2ee;--p-backward:#7b889c}}
*{box-sizing:border-box}
html{scroll-behavior:smooth;-webkit-text-size-adjust:100%}
body{margin:0;background:var(--bg);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",
"Liberation Sans",sans-serif;overflow-wrap:anywhere}
header,main,footer,nav ul{max-width:1120px;margin:0 auto;padding:0 24px}
header{padding-top:36px;padding-bottom:20px}
.kicker{margin:0;color:var(--soft);font-size:13px;font-weight:600;letter-spacing:.06em;text-transform:uppercase}
h1{margin:2px 0 4px;font-size:32px;line-height:1.2;letter-spacing:-.015em}
.folder{margin:0;color:var(--soft);font:14px/1.4 ui-monospace,"SF Mono",Menlo,"Liberation Mono",monospace}
nav{position:sticky;top:0;z-index:5;background:var(--bg);border-bottom:1px solid var(--line)}
nav ul{display:flex;gap:4px 20px;list-style:none;overflow-x:auto;scrollbar-width:none;padding-top:10px;padding-bottom:10px}
nav ul::-webkit-scrollbar{display:none}
nav a{white-space:nowrap;color:var(--soft);text-decoration:none;font-size:14px}
nav a:hover{color:var(--accent)}
section{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:22px 24px;margin:20px 0;
scroll-margin-top:56px}
h2{margin:0 0 2px;font-size:20px;letter-spacing:-.01em}
h3{margin:22px 0 8px;font-size:15px}
.source,.small,.hint,footer{color:var(--soft);font-size:13.5px}
.source{margin:0 0 14px}
.hint,.small{margin:12px 0 0}
.note{margin:12px 0 0;padding:9px 13px;border-left:3px solid var(--second);background:var(--bg);font-size:14px;
border-radius:0 6px 6px 0}
.good{color:var(--good);font-weight:600;margin:6px 0}
code{font:13px ui-monospace,"SF Mono",Menlo,"Liberation Mono",monospace;background:var(--bg);padding:2px 5px;
border-radius:4px}
.badge{display:inline-block;font-size:11px;font-weight:600;line-height:1.5;letter-spacing:.02em;padding:0 7px;
border-radius:9px;border:1px solid currentColor;color:var(--good);vertical-align:2px;white-space:nowrap}
.badge.modelled,.badge.assumed{color:var(--second)}.badge.quoted,.badge.given{color:var(--accent)}
.tiles{display:grid;grid-template-columns:repeat(3,minmax(0,1fr));gap:12px;margin:14px 0 0}
.tile{border:1px solid var(--line);border-radius:10px;padding:13px 16px}
.tile dt{font-size:13px;color:var(--soft)}
.tile dd{margin:0}
.tile b{font-size:26px;line-height:1.25;letter-spacing:-.02em;font-variant-numeric:tabular-nums}
.tile small{display:block;color:var(--soft);font-size:13px;line-height:1.4;margin-top:2px}
.tile .other{display:block;color:var(--second);font-size:14px}
.facts{display:flex;flex-wrap:wrap;gap:7px;list-style:none;margin:16px 0 0;padding:0}
.facts li{background:var(--bg);border-radius:7px;padding:3px 10px;font-size:14px}
.charts{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:28px 36px}
.chart{margin:0;min-width:0}
.chart:first-child,.chart:nth-child(even):last-child{grid-column:1/-1}
figcaption{display:flex;flex-wrap:wrap;gap:2px 9px;align-items:baseline;font-size:15px;margin-bottom:10px}
.unit{color:var(--soft);font-size:13px}
.plot{position:relative;padding:0 0 22px 50px;margin-top:6px}
.area{position:relative;height:190px;border-bottom:1px solid var(--soft);touch-action:pan-y}
.chart:first-child .area{height:270px}
.area svg{display:block;width:100%;height:100%;overflow:visible}
.area path{fill:none;vector-effect:non-scaling-stroke;stroke-linejoin:round;stroke-linecap:round}
.grid{stroke:var(--grid);stroke-width:1}
path.line{stroke:var(--accent);stroke-width:2.2}path.raw{stroke:var(--accent);stroke-width:1;opacity:.4}
path.band{fill:var(--accent)!important;opacity:.14;stroke:none}
path.line.second{stroke:var(--second);stroke-dasharray:7 4}path.raw.second{stroke:var(--second)}
path.band.second{fill:var(--second)!important}
path.joined{stroke:var(--good);stroke-width:1;opacity:.6}path.dots{stroke:var(--good);stroke-width:8}
path.marks{stroke:var(--mark);stroke-width:1.6}
.ylabels span,.xlabels span{position:absolute;font-size:12px;line-height:1;color:var(--soft);
font-variant-numeric:tabular-nums;white-space:nowrap}
.ylabels{position:absolute;left:0;top:0;bottom:22px;width:42px}
.ylabels span{right:0;transform:translateY(50%)}
.xlabels{position:relative;height:0}
.xlabels span{top:8px;transform:translateX(-50%)}
.cross{position:absolute;top:0;bottom:0;width:1px;background:var(--soft);pointer-events:none}
.legend{display:flex;flex-wrap:wrap;gap:3px 16px;margin:8px 0 0;font-size:13px;color:var(--soft)}
.legend span{display:inline-flex;align-items:center;gap:6px}
.legend i{flex:none;display:inline-block;width:16px;height:0;border-top:2.5px solid var(--accent)}
.legend i.raw{border-top-width:1px;opacity:.55}.legend i.band{height:10px;border:0;background:var(--accent);opacity:.2}
.legend i.second{border-color:var(--second);border-top-style:dashed}
.legend i.band.second{background:var(--second)}
.legend i.dots{width:9px;height:9px;border:0;border-radius:50%;background:var(--good)}
.legend i.marks{width:2px;height:12px;border:0;background:var(--mark)}
.legend i.swatch,.legend i[class^=p-]{width:16px;height:14px;border:0;border-radius:3px}
details{margin-top:10px;font-size:14px}
summary{cursor:pointer;color:var(--soft);font-size:13px;width:fit-content}
summary:hover{color:var(--accent)}
details.inline{display:inline;margin:0 0 0 6px}details.inline summary{display:inline}
.scroll{overflow:auto;margin-top:10px;position:relative}
.scroll:focus-visible,a:focus-visible,summary:focus-visible,td:focus-visible{outline:2px solid var(--accent);
outline-offset:1px}
.tall{max-height:620px;border:1px solid var(--line);border-radius:8px}
table{border-collapse:collapse;width:100%;font-size:14px;line-height:1.4}
th,td{text-align:left;padding:6px 12px 6px 0;border-bottom:1px solid var(--line);vertical-align:top;font-weight:400}
thead th{color:var(--soft);font-size:12.5px;font-weight:600;white-space:nowrap}
tbody tr:last-child>*{border-bottom:0}
th[scope=row]{min-width:120px}td.text{min-width:200px}
.num{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
th.num:last-child,td.num:last-child{padding-right:0}
.hidden{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.swatch{display:inline-block;width:14px;height:14px;border-radius:3px;margin-right:8px;vertical-align:-2px}
.legend .swatch{margin-right:0}
.matrix{border-collapse:separate;border-spacing:0;font-size:13.5px}
.matrix thead th{position:sticky;top:0;background:var(--card);z-index:1;padding:8px 6px;border-bottom:1px solid var(--line)}
.matrix thead th:not(:first-child):not(.type):not(.num):not(.why){text-align:center}
.matrix th[scope=row]{padding:5px 14px;max-width:340px}.matrix thead th:first-child{padding-left:14px}
.matrix td{padding:5px 8px}
.matrix td[class^=f-]{text-align:center;white-space:nowrap;width:92px;border:2px solid var(--card);border-radius:7px;cursor:default}
.matrix .num{padding-right:16px}.matrix .type,.matrix .why{color:var(--soft)}
)css"
         R"css(
.f-fp32{background-color:var(--c-fp32)}.f-tf32{background-color:var(--c-tf32)}.f-bf16{background-color:var(--c-bf16)}
.f-fp16{background-color:var(--c-fp16)}.f-fp8_e4m3{background-color:var(--c-fp8_e4m3)}
.f-fp8_e5m2{background-color:var(--c-fp8_e5m2)}.f-int16{background-color:var(--c-int16)}
.f-int12{background-color:var(--c-int12)}.f-int8{background-color:var(--c-int8)}.f-int7{background-color:var(--c-int7)}
.f-int4{background-color:var(--c-int4)}.f-none{background-color:var(--c-none)}
.emulated{background-image:repeating-linear-gradient(135deg,transparent 0 5px,var(--hatch) 5px 6.5px)}
.differs{box-shadow:inset 0 0 0 2px var(--mark)}
.planned{background-color:transparent!important;box-shadow:inset 0 0 0 1px var(--soft);color:var(--soft)}
.uncounted{background-color:var(--c-none);color:var(--soft)}
.share,.lane{display:grid;grid-template-columns:190px minmax(0,1fr);gap:4px 16px;align-items:center;margin:8px 0}
.share b,.lane b{font-size:14px;font-weight:600}.lane b{font-weight:400;font-size:13.5px;text-align:right;line-height:1.25}
.lane small{color:var(--soft)}
.lane .bar{height:20px}.lane{margin:4px 0}.ruler{height:26px}.ruler .xlabels{height:26px}
.bar{display:flex;height:30px;border-radius:7px;overflow:hidden;background:var(--c-none)}
.part{min-width:0;overflow:hidden;white-space:nowrap;text-overflow:ellipsis;font-size:13px;line-height:30px;
text-align:center;border-right:1px solid var(--card)}.part:last-child{border-right:0}
.lane .part{font-size:11.5px;line-height:20px}
.minibar{display:flex;height:12px;min-width:110px;margin-top:4px;border-radius:3px;overflow:hidden}
.p-forward{background:var(--p-forward)}.p-dgrad{background:var(--p-dgrad)}.p-wgrad{background:var(--p-wgrad)}
.p-backward{background:var(--p-backward)}
.severity{font-size:12px;border:1px solid var(--second);color:var(--second);border-radius:9px;padding:0 8px}
.severity.grave{border-color:var(--mark);color:var(--mark)}
.notes{padding-left:34px;margin:8px 0}
#tip{position:fixed;z-index:10;max-width:340px;background:var(--ink);color:var(--bg);border-radius:8px;padding:9px 12px;
font-size:13px;line-height:1.45;pointer-events:none;box-shadow:0 4px 18px rgba(0,0,0,.25);white-space:pre-line}
footer{padding-bottom:44px}
@media (max-width:760px){
header,main,footer,nav ul{padding-left:14px;padding-right:14px}
header{padding-top:22px;padding-bottom:14px}h1{font-size:25px}
section{padding:16px 14px;margin:14px 0;border-radius:10px}
.charts{grid-template-columns:minmax(0,1fr)}
.chart:first-child .area{height:210px}.area{height:165px}
.tiles{grid-template-columns:repeat(2,minmax(0,1fr));gap:9px}.tile{padding:10px 12px}.tile b{font-size:21px}
.tile small{font-size:12px}.tile .badge{font-size:10px}
.xlabels .odd{display:none}.plot{padding-left:44px}.ylabels{width:37px}
.share,.lane{grid-template-columns:minmax(0,1fr)}.lane b{text-align:left}.ruler b{display:none}
.matrix .type,.matrix .num,.matrix .why{display:none}
.matrix{table-layout:fixed}.matrix thead th:nth-child(n+2):nth-child(-n+5){width:52px}
.matrix th[scope=row]{padding:5px 6px 5px 8px;min-width:0;font-size:12.5px}.matrix td{padding:5px 1px}.matrix td[class^=f-]{width:52px;min-width:0;padding:5px 0;font-size:10.5px;
letter-spacing:-.03em;border-width:1px}.minibar{min-width:54px}
.matrix thead th{padding:7px 2px;font-size:11.5px}.matrix thead th:first-child{padding-left:8px}
.stack thead{display:none}.stack tr{display:block;padding:9px 0;border-bottom:1px solid var(--line)}
.stack tr:last-child{border-bottom:0}
.stack th,.stack td{display:grid;grid-template-columns:104px minmax(0,1fr);gap:10px;padding:2px 0;border:0;text-align:left;
white-space:normal}
.stack th::before,.stack td::before{content:attr(data-l);color:var(--soft);font-size:12.5px}
.stack td:empty{display:none}
#tip{left:10px!important;right:10px;bottom:12px;top:auto!important;max-width:none}
}
@media print{
:root{color-scheme:light}
body{background:#fff;font-size:11pt}nav,#tip,summary{display:none}
section{border:0;padding:0 0 12px;margin:0 0 14px;break-inside:auto}h2,h3,figcaption{break-after:avoid}
.chart,.tile,tr{break-inside:avoid}.tall{max-height:none;border:0}.scroll{overflow:visible}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}
}
)css";
}

}  // namespace hpqf::observe
