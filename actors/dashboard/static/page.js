// The page at work: it asks for a frame each second, and shows it.
//
// All that comes from the system becomes text nodes and attributes of shapes, never markup. The token
// is behind the `#` of the address, which browsers do not send; the script sends it as a header.

'use strict';
const token = location.hash.slice(1);
const viewer = Array.from(crypto.getRandomValues(new Uint8Array(12)), b => b.toString(16)).join('');
const KEPT = 300, FIRST = 50, MORE = 100;
const opened = new Map([['0', FIRST]]);  // branches of the tree: how many of each are shown
let series = {}, counts = {};
let sort = 'load', system = '', paused = false, failed = 0;
const at = id => document.getElementById(id);
const SVG = 'http://www.w3.org/2000/svg';

function element(tag, text, cls) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (cls) made.className = cls;
  return made;
}
function shape(tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}
function button(text, label, press) {
  const made = element('button', text);
  made.type = 'button';
  made.title = label;
  made.addEventListener('click', () => { press(); look(); });
  return made;
}
function figure(value, digits) {
  if (value === null || value === undefined) return '-';
  return value.toLocaleString('en', {maximumFractionDigits: digits || 0});
}
// Replace the contents of a place, and keep its horizontal scroll position.
function put(place, ...shown) {
  const left = [...place.children].map(one => one.scrollLeft);
  place.replaceChildren(...shown);
  [...place.children].forEach((one, i) => { one.scrollLeft = left[i] || 0; });
}
function duration(value) {
  if (value === null) return '-';
  if (value >= 1) return figure(value, 3) + ' s';
  return value >= 1e-3 ? figure(1e3 * value, 3) + ' ms' : figure(1e6 * value, 1) + ' us';
}
function percent(value) { return value === null ? '-' : (100 * value).toFixed(1) + '%'; }
function short(text, most) {
  return text.length > most ? text.slice(0, most - 1) + '\u2026' : text;
}

// A column: its name, what a row has there, and whether that is a figure; then its order, a class.
function table(columns, rows, classOf, choose) {
  const made = element('table');
  const head = made.createTHead().insertRow();
  for (const [name, , isFigure, sorts] of columns) {
    const cell = element('th', sorts === sort ? name + ' \u2193' : name, isFigure ? 'figure' : '');
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
    if (choose) line.addEventListener('click', () => choose(row));
    for (const [, value, isFigure, , kind] of columns) {
      line.append(element('td', value(row), isFigure ? 'figure' : kind || ''));
    }
  });
  const wide = element('div', undefined, 'wide');
  wide.append(made);
  return wide;
}

function plot(name, value) {
  const values = series[name] = (series[name] || []).concat(value).slice(-KEPT);
  const most = Math.max(...values, 1e-9);
  const box = element('div', undefined, 'plot');
  const svg = shape('svg', {viewBox: '0 0 ' + KEPT + ' 50', preserveAspectRatio: 'none'});
  const points = values.map((one, i) => (KEPT - values.length + i) + ',' + (49 - 48 * one / most));
  svg.append(shape('polyline', {points: points.join(' ')}));
  const digits = most < 100 ? 1 : 0;
  const title = name + ' ' + figure(value, digits) + ', most ' + figure(most, digits);
  box.append(element('div', title), svg);
  return box;
}

// --- runs: a picture, whose lines have rates, and a table

function drawing(run) {
  const known = run.drawing, of = new Map(run.operators.map(one => [one.key, one]));
  const slowest = run.slowest === null ? null : run.operators[run.slowest];
  const svg = shape('svg', {width: known.width, height: known.height,
    viewBox: '0 0 ' + known.width + ' ' + known.height});
  for (const d of known.backs) {
    svg.append(shape('path', {d, class: 'back', 'marker-end': 'url(#tip)'}));
  }
  for (const one of known.lines) {
    svg.append(shape('path', {d: one.d, 'marker-end': 'url(#tip)'}));
    const rate = one.rate === null ? '' : figure(one.rate) + '/s';
    const text = [one.text && short(one.text, 8), rate].filter(Boolean).join(' ');
    const {x, y, anchor} = one;
    svg.append(shape('text', {x, y, 'text-anchor': anchor, class: 'small'}, text));
  }
  for (const box of known.boxes) svg.append(boxOf(box, of.get(box.key), slowest, run));
  const wide = element('div', undefined, 'wide');
  wide.append(svg);
  return wide;
}
function boxOf(box, operator, slowest, run) {
  const {x, y} = box, group = shape('g', {});
  const middle = {'text-anchor': 'middle', x: x + 75};
  if (box.kind === 'junction') {
    group.append(shape('path', {d: 'M' + x + ' ' + (y + 22) + 'h150'}),
      shape('circle', {cx: x + 75, cy: y + 22, r: box.name ? 14 : 4}),
      shape('text', {...middle, y: y + 26}, short(box.name, 4)), shape('title', {}, box.name));
    return group;
  }
  group.append(shape('rect', {x, y, width: 150, height: 44, rx: 6}));
  let figures = box.kind;
  if (operator && operator.rate_out !== null) {
    const load = Math.min(operator.load / Math.max(operator.workers, 1), 1);
    group.append(shape('rect', {x: x + 1, y: y + 39, width: 148 * load, height: 4, class: 'load'}));
    figures = percent(operator.load) + ' busy, ' + figure(1e6 * operator.cost, 1) + ' us';
    if (operator.queued >= 1) figures += ', ' + figure(operator.queued) + ' wait';
  } else if (operator) figures = operator.words;
  if (slowest && slowest.key === box.key) group.setAttribute('class', 'slowest');
  group.append(shape('text', {...middle, y: y + 18}, short(box.name, 20)),
    shape('text', {...middle, y: y + 33, class: 'small'}, figures),
    shape('title', {}, box.name + ': ' + box.kind + (operator ? ', ' + operator.words : '')));
  return group;
}
function parts(run) {
  if (run.processes.length) {
    return [table([
      ['process', p => p.name], ['pid', p => p.pid === null ? '-' : String(p.pid), true],
      ['load', p => percent(p.load), true], ['done/s', p => figure(p.rate), true],
      ['sent, MB/s', p => figure(p.sent / 1e6, 1), true],
      ['received, MB/s', p => figure(p.received / 1e6, 1), true],
      ['waiting', p => figure(p.waiting), true], ['started', p => p.started ? 'yes' : 'not yet'],
      ['ends so far', p => figure(p.ends), true], ['why', p => p.words]], run.processes)];
  }
  const found = table([
    ['operator', o => o.name], ['load', o => percent(o.load), true],
    ['in/s', o => figure(o.rate_in), true], ['out/s', o => figure(o.rate_out), true],
    ['us a row', o => figure(1e6 * o.cost, 3), true], ['queued', o => figure(o.queued), true],
    ['lag, s', o => figure(o.lag, 3), true], ['event lag', o => figure(o.watermark_lag), true],
    ['workers', o => figure(o.workers), true],
    ['why', o => o.words]], run.operators, (_, i) => i === run.slowest ? 'slowest' : '');
  return run.drawing ? [drawing(run), found] : [found];
}
function showRuns(runs) {
  const place = at('runs'), there = new Map([...place.children].map(one => [one.dataset.run, one]));
  for (const run of runs) {
    const name = String(run.number);
    let section = there.get(name);
    there.delete(name);
    if (!section) {
      section = element('section', undefined, 'run');
      section.dataset.run = name;
      place.append(section);
    }
    const rate = run.processes.length ? '' : ', ' + figure(run.rate) + ' rows/s';
    const latency = run.p50 === null ? '' :
      ', latency p50 ' + duration(run.p50) + ', p99 ' + duration(run.p99);
    put(section, element('h2', run.title + rate + latency), ...parts(run));
  }
  for (const gone of there.values()) gone.remove();
}

// --- the tree of actors; the system sends its open branches

function branch(line) {
  const made = element('div', undefined, 'line ' + (line.reason || ''));
  made.style.paddingLeft = 1.4 * line.depth + 'em';
  if (line.cut) {
    made.append(document.createTextNode('The rest is not shown. Search for it above.'));
    return made;
  }
  if (line.more !== undefined) {
    made.append(button(figure(line.more) + ' more', 'show more',
      () => opened.set(line.branch, line.shown + MORE)));
    return made;
  }
  const isOpen = opened.has(line.number), toggle = line.children === 0 ? element('button', ' ') :
    button(isOpen ? '\u25be' : '\u25b8', isOpen ? 'close' : 'open',
      () => isOpen ? opened.delete(line.number) : opened.set(line.number, FIRST));
  toggle.disabled = line.children === 0;
  made.append(toggle, document.createTextNode(line.name), element('span', line.class),
    element('span', figure(line.messages) + ' messages'));
  if (line.children) made.append(element('span', figure(line.children) + ' children'));
  if (line.queue) made.append(element('span', figure(line.queue) + ' wait'));
  made.append(element('span', line.words));
  return made;
}

// --- all of it

function show(seen) {
  document.title = seen.system + ' - callboard';
  at('system').textContent = seen.system + ': ' + figure(seen.live) +
    (seen.live === 1 ? ' actor' : ' actors') + ', monitoring ' + seen.monitoring + ', over ' +
    seen.seconds.toFixed(1) + ' s';
  put(at('reasons'), ...Object.entries(seen.reasons).map(
    ([reason, count]) => element('span', reason + ' ' + figure(count) + '  ', reason)));
  at('level').textContent = seen.level;
  showSystems(seen);
  showServers(seen.servers);
  const letters = seen.letters.reduce((sum, one) => sum + one[2], 0);
  const graphs = seen.runs.filter(run => !run.processes.length);
  const rows = graphs.reduce((sum, run) => sum + run.rate, 0);
  put(at('plots'), plot('dispatches/s', seen.messages), plot('waiting messages',
    seen.queued), plot('dead letters/s', letters), plot('workers', seen.running),
    ...graphs.length ? [plot('rows/s', rows)] : []);
  put(at('workers'), table([
    ['worker', w => w.name], ['runs', w => w.actor], ['busy', w => percent(w.share), true],
    ['dispatches/s', w => figure(w.rate), true],
    ['in message, s', w => w.in_message === null ? '' : w.in_message.toFixed(3), true]],
    seen.workers));
  showRuns(seen.runs);
  put(at('classes'), seen.classes.length === 0 ? '' : table([
    ['class', c => c.name], ['rate', c => figure(c.rate) + '/s', true],
    ['p50', c => duration(c.p50), true], ['p99', c => duration(c.p99), true],
    ['mailbox p50', c => duration(c.mailbox_p50), true],
    ['mailbox p99', c => duration(c.mailbox_p99), true]], seen.classes));
  put(at('actors'), table([
    ['actor', a => a.path], ['class', a => a.cls], ['worker', a => a.worker],
    ['load', a => percent(a.load), true, 'load'],
    ['rate', a => figure(a.rate) + '/s', true, 'rate'],
    ['queue', a => figure(a.queue), true, 'queue'],
    ['total', a => figure(a.messages), true, 'total'],
    ['dropped', a => figure(a.dropped), true], ['why', a => a.words]],
    seen.actors, a => a.reason));
  put(at('tree'), ...seen.tree.map(branch));
  put(at('letters'), seen.letters.length === 0 ? '' : table([
    ['dead letters', l => l[0]], ['so far', l => figure(l[1]), true],
    ['a second', l => figure(l[2], 1), true]], seen.letters));
  put(at('kept'), seen.kept.length === 0 ? 'none' : table([
    ['at', l => new Date(1000 * l.at).toLocaleTimeString()], ['to', l => l.to],
    ['from', l => l.sender || '-'], ['reason', l => l.reason],
    ['message', l => l.message, false, null, 'message'], ['error', l => l.error || '']],
    seen.kept));
  put(at('failures'), seen.failures ? table([
    [figure(seen.failures) + ' failures, at last', one => one]], [...seen.latest].reverse()) : '');
  put(at('stacks'), ...seen.stacks.flatMap(
    ([title, stack]) => [element('h2', title, 'stuck'), element('pre', stack)]));
}
function showSystems(seen) {
  const now = performance.now() / 1000, rate = one => {
    const was = counts[one.key];
    if (!was || was[1] !== one.dispatches || now - was[0] > 3) {
      const done = was ? Math.max(one.dispatches - was[1], 0) / (now - was[0]) : 0;
      counts[one.key] = [now, one.dispatches, done];
    }
    return counts[one.key][2];
  };
  const served = one => one.served.map(server => server.address + ' ' + server.state +
    (server.shard ? ', shard ' + server.shard : '') + ', ' + figure(server.connections) +
    ' clients, ' + figure(server.handled) + ' handled').join('; ');
  const some = seen.systems.length > 1 || seen.systems.some(one => one.served.length);
  put(at('systems'), some ? table([
    ['system', s => s.system, false, null, 'chooses'], ['pid', s => String(s.pid), true],
    ['dispatches/s', s => figure(rate(s)), true],
    ['dead letters', s => figure(s.dead_letters), true],
    ['failures', s => figure(s.failures), true], ['serves', served]],
    seen.systems, s => s.key === seen.key ? 'chosen' : '', choose) : '');
}
function showServers(servers) {
  put(at('servers'), servers.length ? table([
    ['server', s => s.address], ['shard', s => s.shard || ''], ['state', s => s.state],
    ['clients', s => figure(s.connections), true], ['handled', s => figure(s.handled), true],
    ['not applied', s => figure(s.unapplied), true],
    ['dead letters', s => figure(s.dead_letters), true],
    ['failures', s => figure(s.failures), true]], servers,
    s => s.state === 'serving' ? '' : 'room') : '');
}
function choose(one) {
  if (one.key === system) return;
  system = one.key;
  series = {};
  opened.clear();
  opened.set('0', FIRST);
  at('runs').replaceChildren();
  look();
}

async function look() {
  const asked = new URLSearchParams({viewer, system, sort, most: at('most').value,
    part: at('part').value, letters: at('postbox').open ? 1 : 0, branches: at('forest').open ?
    [...opened].map(([number, most]) => number + ':' + Math.min(most, 400)).join(',') : ''});
  try {
    const answer = await fetch('picture?' + asked, {headers: {Authorization: 'Bearer ' + token}});
    if (!answer.ok) throw new Error(await answer.text());
    const seen = await answer.json();
    if (system && seen.key !== system) return;  // another one has been chosen
    system = seen.key;
    if (!paused) show(seen);
    failed = 0;
    at('trouble').textContent = '';
  } catch (error) {
    failed += 1;
    at('trouble').textContent = String(error.message || error);
  }
}
at('pause').addEventListener('change', event => { paused = event.target.checked; });
for (const id of ['postbox', 'forest']) at(id).addEventListener('toggle', () => look());
async function go() {
  await look();
  setTimeout(go, failed > 3 ? 5000 : 1000);
}
look().then(() => setTimeout(go, 300));
