'use strict';

const asked = new URLSearchParams(location.search);
const nodes = document.getElementById('node'), ranges = document.getElementById('range');
let dashboard;

// api asks Prometheus.
async function api(path, parameters) {
  const answer = await (await fetch('api/v1/' + path + '?' + new URLSearchParams(parameters))).json();
  if (answer.status !== 'success') throw new Error(`${parameters.query || path}: ${answer.error}`);
  return answer.data;
}

// fill puts the variables of the dashboard into a text; `$node` is the only one.
function fill(text) {
  return (dashboard.templating.list || []).reduce((filled, each) => filled.replaceAll('$' + each.name, nodes.value), text);
}

// nameOf fills the labels of a series into the template of a legend.
function nameOf(template, labels) {
  if (template) return template.replace(/\{\{\s*(\w+)\s*\}\}/g, (_, label) => labels[label] || '');
  return Object.entries(labels).map(([name, value]) => name + '=' + value).join(', ') || 'value';
}

// offerNodes fills the list of nodes as the variable of the dashboard says: label_values(<query>, <label>).
async function offerNodes() {
  for (const variable of dashboard.templating.list || []) {
    const parts = /^label_values\((.*), *(\w+)\)$/s.exec(variable.query);
    if (!parts) throw new Error('the variable ' + variable.name + ' has a query that this page does not know: ' + variable.query);
    const series = await api('series', { 'match[]': parts[1], start: Date.now() / 1000 - Number(ranges.value) });
    const names = [...new Set(series.map(labels => labels[parts[2]]))].sort();
    const chosen = nodes.value || asked.get('node');
    nodes.replaceChildren(...names.map(name => new Option(name, name, false, name === chosen)));
  }
}

async function single(panel) {
  const results = (await api('query', { query: fill(panel.targets[0].expr) })).result;
  const element = document.createElement('div');
  element.className = results.length ? 'number' : 'none';
  element.textContent = results.length ? format(Number(results[0].value[1]), panel.format) : 'no data';
  return [element];
}

async function graph(panel, range) {
  const series = [];
  for (const target of panel.targets) {
    const data = await api('query_range', { query: fill(target.expr), start: range.start, end: range.end, step: range.step });
    for (const each of data.result) {
      series.push({ name: nameOf(target.legendFormat, each.metric), points: each.values.map(([time, value]) => [time, Number(value)]) });
    }
  }
  series.sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }));
  if (!series.length) {
    const none = document.createElement('div');
    none.className = 'none';
    none.textContent = 'no data';
    return [none];
  }
  const unit = panel.yaxes[0].format;
  return [chart(series, range, unit), legend(series, unit)];
}

async function draw() {
  await offerNodes();
  const length = Number(ranges.value), end = Math.floor(Date.now() / 1000);
  const range = { start: end - length, end, step: Math.max(5, Math.round(length / 180)) };
  const rows = await Promise.all(dashboard.rows.map(async row => {
    const heading = document.createElement('h2'), panels = document.createElement('div');
    heading.textContent = fill(row.title);
    panels.className = 'panels';
    panels.append(...await Promise.all(row.panels.map(async panel => {
      const element = document.createElement('section'), title = document.createElement('h3');
      element.className = 'panel';
      element.style.gridColumn = 'span ' + panel.span;
      title.textContent = fill(panel.title);
      element.append(title, ...await (panel.type === 'singlestat' ? single(panel) : graph(panel, range)));
      return element;
    })));
    return [heading, panels];
  }));
  document.getElementById('rows').replaceChildren(...rows.flat());
}

async function show() {
  const failure = document.getElementById('failure');
  try {
    if (!dashboard) {
      const answer = await fetch('dashboards');
      if (!answer.ok) throw new Error(await answer.text());
      dashboard = (await answer.json())[0];
      if (!dashboard) throw new Error('there is no dashboard yet: the operator makes it once the namespace has the label');
      document.title = document.getElementById('title').textContent = dashboard.title;
      ranges.value = asked.get('range') || ranges.value || 3600;
    }
    await draw();
    failure.hidden = true;
    document.body.dataset.drawn = 'true';
  } catch (error) {
    failure.textContent = error.message;
    failure.hidden = false;
  }
}

ranges.value = 900;
nodes.onchange = ranges.onchange = show;
show();
setInterval(show, 15000);
