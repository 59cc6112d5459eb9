"""How the page looks, in light and in dark, on a wide and on a narrow screen."""

STYLE = """
:root { color-scheme: light dark; --text: #222; --ground: #fff; --rule: #ddd; --soft: #f4f4f4;
  --faint: #666; --bad: #b00; --wait: #a60; --good: #070; --line: #06c; --box: #e3f0fb;
  --load: #7ab4e8; --bad-box: #fbe3e3; --bad-load: #e88; }
@media (prefers-color-scheme: dark) { :root { --text: #ddd; --ground: #161616; --rule: #3a3a3a;
  --soft: #222; --faint: #999; --bad: #f77; --wait: #eb5; --good: #6c6; --line: #6af;
  --box: #1d2b38; --load: #2f6296; --bad-box: #3a1d1d; --bad-load: #a33; } }
body { font: 14px sans-serif; margin: 1em; color: var(--text); background: var(--ground);
  overflow-wrap: anywhere; }
h1 { font-size: 20px; margin: .3em 0; }
h2 { font-size: 15px; margin: 1.2em 0 .2em; }
summary { cursor: pointer; font-weight: bold; margin: 1em 0 .2em; }
table { border-collapse: collapse; margin: .3em 0; overflow-wrap: normal; }
th, td { padding: 1px 10px 1px 0; text-align: left; border-bottom: 1px solid var(--rule); }
td { max-width: 40em; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
td.message { white-space: pre-wrap; min-width: 16em; overflow-wrap: anywhere; }
.figure { text-align: right; font-variant-numeric: tabular-nums; }
.sorts, .chooses { cursor: pointer; text-decoration: underline; }
#trouble:empty { display: none; }
.stuck, .slowest, #trouble, #failures td { color: var(--bad); }
.stuck, .slowest, .chosen { font-weight: bold; }
.room, .token, .window, .lanes { color: var(--wait); }
.running { color: var(--good); }
.wide { overflow-x: auto; }
.line { white-space: nowrap; }
.line span { color: var(--faint); padding-left: 1em; }
.line button { font: inherit; color: inherit; background: none; border: 0; padding: 0 .3em;
  min-width: 1.6em; cursor: pointer; }
pre { background: var(--soft); padding: .5em; overflow: auto; }
#plots { display: flex; flex-wrap: wrap; gap: .5em 1em; }
.plot { flex: 1 1 180px; max-width: 340px; }
.plot svg { width: 100%; height: 50px; border: 1px solid var(--rule); display: block; }
polyline { fill: none; stroke: var(--line); vector-effect: non-scaling-stroke; }
.run svg { font-size: 12px; }
.run path { fill: none; stroke: var(--faint); }
.run path.back { stroke-dasharray: 4 3; }
.run rect, .run circle { fill: var(--box); stroke: var(--faint); }
.run rect.load { fill: var(--load); stroke: none; }
.run .slowest rect { fill: var(--bad-box); stroke: var(--bad); stroke-width: 2; }
.run .slowest rect.load { fill: var(--bad-load); stroke: none; }
.run text { fill: var(--text); }
.run text.small { fill: var(--faint); font-size: 10px; }
#tip path { fill: var(--faint); }
input { font: inherit; max-width: 12em; }
"""
