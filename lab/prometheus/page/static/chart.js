'use strict';

const colors = ['#0066cc', '#f4a100', '#3e8635', '#a30000', '#6753ac', '#009596', '#ef9234', '#8a8d90', '#b1a3e3', '#4cb140'];
const frame = { width: 460, height: 190, left: 62, right: 10, top: 8, bottom: 20 };

function svg(name, attributes, text) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (text !== undefined) element.textContent = text;
  return element;
}

// steps returns the values at which an axis from 0 has its marks; bytes are counted by 1024.
function steps(highest, unit) {
  const base = unit === 'bytes' ? Math.pow(1024, Math.floor(Math.log(Math.max(highest, 1)) / Math.log(1024))) : 1;
  const rough = (highest > 0 ? highest : 1) / base / 4;
  const power = Math.pow(10, Math.floor(Math.log10(rough)));
  const step = base * power * [1, 2, 2.5, 5, 10].find(factor => factor * power >= rough * 0.999);
  return Array.from({ length: Math.ceil(highest / step - 1e-9) + 1 || 2 }, (_, i) => i * step);
}

// chart draws series of [time, value] over a range of time. Where samples are missing, the line has a gap.
function chart(series, range, unit) {
  const values = series.flatMap(each => each.points.map(point => point[1])).filter(Number.isFinite);
  const marks = steps(Math.max(0, ...values), unit);
  const highest = Math.max(marks[marks.length - 1], marks[1] || 1);
  const x = time => frame.left + (time - range.start) / (range.end - range.start) * (frame.width - frame.left - frame.right);
  const y = value => frame.height - frame.bottom - value / highest * (frame.height - frame.top - frame.bottom);
  const picture = svg('svg', { viewBox: `0 0 ${frame.width} ${frame.height}`, role: 'img' });
  for (const mark of marks) {
    picture.append(svg('line', { class: mark ? 'grid' : 'axis', x1: frame.left, x2: frame.width - frame.right, y1: y(mark), y2: y(mark) }));
    picture.append(svg('text', { x: frame.left - 6, y: y(mark) + 3.5, 'text-anchor': 'end' }, format(mark, unit)));
  }
  for (let i = 0; i <= 4; i++) {
    const time = range.start + (range.end - range.start) * i / 4;
    const anchor = i === 0 ? 'start' : i === 4 ? 'end' : 'middle';
    picture.append(svg('text', { x: x(time), y: frame.height - 5, 'text-anchor': anchor }, clock(time, range.end - range.start < 600)));
  }
  series.forEach((each, i) => {
    const color = colors[i % colors.length];
    let path = '', before = -Infinity;
    for (const [time, value] of each.points) {
      if (!Number.isFinite(value)) continue;
      const move = time - before > range.step * 1.5;
      path += `${move ? 'M' : 'L'}${x(time).toFixed(1)},${y(Math.max(0, value)).toFixed(1)}${move ? 'h0.1' : ''}`;
      before = time;
    }
    const line = svg('path', { d: path, stroke: color, 'stroke-linecap': 'round' });
    line.append(svg('title', {}, each.name));
    picture.append(line);
  });
  return picture;
}

function legend(series, unit) {
  const list = document.createElement('ul');
  list.className = 'legend';
  series.forEach((each, i) => {
    const item = document.createElement('li');
    const last = each.points[each.points.length - 1];
    for (const [kind, text] of [['mark', ''], ['name', each.name], ['value', last ? format(last[1], unit) : '']]) {
      const part = document.createElement('span');
      part.className = kind;
      part.textContent = text;
      if (kind === 'mark') part.style.background = colors[i % colors.length];
      if (kind === 'name') part.title = text;
      item.append(part);
    }
    list.append(item);
  });
  return list;
}
