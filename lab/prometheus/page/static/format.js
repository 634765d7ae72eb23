'use strict';

// Units as Grafana names them: what a dashboard says of an axis.
const units = {
  percentunit: v => number(v * 100) + '%',
  bytes: v => scaled(v, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB']),
  Bps: v => scaled(v, 1000, ['B/s', 'kB/s', 'MB/s', 'GB/s']),
  s: duration,
};

function format(value, unit) {
  if (!Number.isFinite(value)) return String(value);
  return (units[unit] || number)(value);
}

function number(value) {
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return String(Number(value.toFixed(digits)));
}

function scaled(value, base, names) {
  let i = 0;
  for (; Math.abs(value) >= base && i < names.length - 1; i++) value /= base;
  return number(value) + ' ' + names[i];
}

function duration(seconds) {
  const sizes = [[86400, 'd'], [3600, 'h'], [60, 'min']];
  for (const [size, name] of sizes) if (Math.abs(seconds) >= 2 * size) return number(seconds / size) + ' ' + name;
  return Math.abs(seconds) < 1 ? number(seconds * 1000) + ' ms' : number(seconds) + ' s';
}

function clock(seconds, withSeconds) {
  return new Date(seconds * 1000).toTimeString().slice(0, withSeconds ? 8 : 5);
}
