"""The page: one file, which needs no build and nothing from elsewhere.

All that comes from the system becomes text nodes. The token is behind the `#` of the address, which
browsers do not send; the script sends it as a header.
"""

from __future__ import annotations

import base64
import hashlib

STYLE = """
body { font: 14px sans-serif; margin: 1em; color: #222; background: #fff; }
table { border-collapse: collapse; margin: .5em 0 1em; }
th, td { padding: 1px 10px; text-align: left; border-bottom: 1px solid #ddd; }
.figure { text-align: right; font-variant-numeric: tabular-nums; }
th.sorts { cursor: pointer; text-decoration: underline; }
.stuck, .slowest { color: #b00; font-weight: bold; }
.room, .token, .window, .lanes { color: #a60; }
.running { color: #070; }
h2 { font-size: 15px; margin: 1em 0 0; }
pre { background: #f4f4f4; padding: .5em; overflow: auto; }
svg { border: 1px solid #ddd; margin-right: 1em; }
polyline { fill: none; stroke: #06c; }
#trouble { color: #b00; }
"""

SCRIPT = """
'use strict';
const token = location.hash.slice(1);
const viewer = Array.from(crypto.getRandomValues(new Uint8Array(12)), b => b.toString(16)).join('');
const KEPT = 300;
const series = {};
let sort = 'load', paused = false, failed = 0;
const at = id => document.getElementById(id);
const SVG = 'http://www.w3.org/2000/svg';

function element(tag, text, cls) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (cls) made.className = cls;
  return made;
}
function figure(value, digits) {
  return value === null ? '-' : value.toLocaleString('en', {maximumFractionDigits: digits || 0});
}
function duration(value) {
  if (value === null) return '-';
  if (value >= 1) return figure(value, 3) + ' s';
  return value >= 1e-3 ? figure(1e3 * value, 3) + ' ms' : figure(1e6 * value, 1) + ' us';
}
function percent(value) { return value === null ? '-' : (100 * value).toFixed(1) + '%'; }

// A column: its name, what a row has there, and whether that is a figure.
function table(columns, rows, classOf) {
  const made = element('table');
  const head = made.createTHead().insertRow();
  for (const [name, , isFigure, sorts] of columns) {
    const cell = element('th', sorts === sort ? name + ' \\u2193' : name, isFigure ? 'figure' : '');
    if (sorts) {
      cell.classList.add('sorts');
      cell.addEventListener('click', () => { sort = sorts; look(); });
    }
    head.append(cell);
  }
  const body = made.createTBody();
  rows.forEach((row, i) => {
    const line = body.insertRow();
    const cls = classOf ? classOf(row, i) : '';
    if (cls) line.className = cls;
    for (const [, value, isFigure] of columns) {
      line.append(element('td', value(row), isFigure ? 'figure' : ''));
    }
  });
  return made;
}

function plot(name, value) {
  const values = series[name] = (series[name] || []).concat(value).slice(-KEPT);
  const most = Math.max(...values, 1e-9);
  const box = element('span');
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('width', KEPT);
  svg.setAttribute('height', 50);
  const line = document.createElementNS(SVG, 'polyline');
  const points = values.map((one, i) => (KEPT - values.length + i) + ',' + (49 - 48 * one / most));
  line.setAttribute('points', points.join(' '));
  svg.append(line);
  const title = name + ' ' + figure(value, 1) + ' (most ' + figure(most, 1) + ') ';
  box.append(element('span', title), svg);
  return box;
}

function show(seen) {
  document.title = seen.system + ' - callboard';
  at('system').textContent = seen.system + ': ' + figure(seen.live) + ' actors, monitoring ' +
    seen.monitoring + ', over ' + seen.seconds.toFixed(1) + ' s';
  at('reasons').replaceChildren(...Object.entries(seen.reasons).map(
    ([reason, count]) => element('span', reason + ' ' + figure(count) + '  ', reason)));
  at('level').textContent = seen.level;
  const letters = seen.letters.reduce((sum, one) => sum + one[2], 0);
  const queued = seen.actors.reduce((sum, one) => sum + (one.queue || 0), 0);
  at('plots').replaceChildren(plot('dispatches/s', seen.messages), plot('dead letters/s', letters),
    plot('waiting, of the actors below', queued));
  at('workers').replaceChildren(table([
    ['worker', w => w.name], ['runs', w => w.actor], ['busy', w => percent(w.share), true],
    ['dispatches/s', w => figure(w.rate), true],
    ['in message, s', w => w.in_message === null ? '' : w.in_message.toFixed(3), true]],
    seen.workers));
  at('runs').replaceChildren(...seen.runs.flatMap(run => [
    element('h2', run.title + ', ' + figure(run.rate) + ' rows/s' + (run.p50 === null ? '' :
      ', latency p50 ' + duration(run.p50) + ', p99 ' + duration(run.p99))),
    table([
      ['operator', o => o.name], ['load', o => percent(o.load), true],
      ['in/s', o => figure(o.rate_in), true], ['out/s', o => figure(o.rate_out), true],
      ['us a row', o => figure(1e6 * o.cost, 3), true], ['queued', o => figure(o.queued), true],
      ['lag, s', o => figure(o.lag, 3), true], ['event lag', o => figure(o.watermark_lag), true],
      ['workers', o => figure(o.workers), true],
      ['why', o => o.words]], run.operators, (_, i) => i === run.slowest ? 'slowest' : '')]));
  at('classes').replaceChildren(seen.classes.length === 0 ? '' : table([
    ['class', c => c.name], ['rate', c => figure(c.rate) + '/s', true],
    ['p50', c => duration(c.p50), true], ['p99', c => duration(c.p99), true],
    ['mailbox p50', c => duration(c.mailbox_p50), true],
    ['mailbox p99', c => duration(c.mailbox_p99), true]], seen.classes));
  at('actors').replaceChildren(table([
    ['actor', a => a.path], ['class', a => a.cls], ['worker', a => a.worker],
    ['load', a => percent(a.load), true, 'load'],
    ['rate', a => figure(a.rate) + '/s', true, 'rate'],
    ['queue', a => figure(a.queue), true, 'queue'],
    ['total', a => figure(a.messages), true, 'total'],
    ['dropped', a => figure(a.dropped), true], ['why', a => a.words]],
    seen.actors, a => a.reason));
  at('letters').replaceChildren(seen.letters.length === 0 ? '' : table([
    ['dead letters', l => l[0]], ['so far', l => figure(l[1]), true],
    ['a second', l => figure(l[2], 1), true]], seen.letters));
  at('failures').textContent = seen.failures ?
    seen.failures + ' failures, at last: ' + seen.latest.join('; ') : '';
  at('stacks').replaceChildren(...seen.stacks.flatMap(
    ([title, stack]) => [element('h2', title, 'stuck'), element('pre', stack)]));
}

async function look() {
  const asked = new URLSearchParams({viewer, sort, most: at('most').value, part: at('part').value});
  try {
    const answer = await fetch('picture?' + asked, {headers: {Authorization: 'Bearer ' + token}});
    if (!answer.ok) throw new Error(await answer.text());
    const seen = await answer.json();
    if (!paused) show(seen);
    failed = 0;
    at('trouble').textContent = '';
  } catch (error) {
    failed += 1;
    at('trouble').textContent = String(error.message || error);
  }
}
at('pause').addEventListener('change', event => { paused = event.target.checked; });
async function go() {
  await look();
  setTimeout(go, failed > 3 ? 5000 : 1000);
}
look().then(() => setTimeout(go, 300));
"""

BODY = """
<p id="trouble"></p>
<h1 id="system">callboard</h1>
<p><span id="reasons"></span><br><span id="level"></span></p>
<p>
<label>paths with <input id="part" size="20"></label>
<label>actors <input id="most" type="number" value="30" min="1" max="1000"></label>
<label><input id="pause" type="checkbox"> pause</label>
</p>
<p id="plots"></p>
<div id="workers"></div>
<div id="runs"></div>
<div id="classes"></div>
<div id="actors"></div>
<div id="letters"></div>
<p id="failures" class="stuck"></p>
<div id="stacks"></div>
"""

PAGE = (
    '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>callboard</title>'
    f"<style>{STYLE}</style></head><body>{BODY}<script>{SCRIPT}</script></body></html>\n"
)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; script-src {_hash(SCRIPT)}; style-src {_hash(STYLE)}; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
"""Headers of each answer: no other script can run in the page, even if a name were markup."""
