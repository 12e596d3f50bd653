// Times in the reader's zone or in UTC, in one format: 18:26 on the same day, 24 Nov 18:26 on other days,
// 24 Nov 2025 18:26 in other years. The reader's choice of a zone holds for all pages of this browser.

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const KEY = "compilewatch.zone";
const two = (number) => String(number).padStart(2, "0");

function readZone() {
  try {
    return localStorage.getItem(KEY) === "utc" ? "utc" : "local";
  } catch {
    return "local"; // a browser that refuses storage
  }
}

let chosen = readZone();

export const chosenZone = () => chosen;

export function chooseZone(zone) {
  chosen = zone;
  try {
    localStorage.setItem(KEY, zone);
  } catch { /* the choice holds for this page */ }
}

const offset = (at) => (chosen === "utc" ? 0 : -at.getTimezoneOffset());

// The wall clock of the zone, as the UTC fields of a date.
export const wall = (at) => new Date(at.getTime() + offset(at) * 60000);

export const clock = (at) => `${two(wall(at).getUTCHours())}:${two(wall(at).getUTCMinutes())}`;

export function date(at, now = new Date()) {
  const day = wall(at);
  const year = day.getUTCFullYear() === wall(now).getUTCFullYear() ? "" : ` ${day.getUTCFullYear()}`;
  return `${day.getUTCDate()} ${MONTHS[day.getUTCMonth()]}${year}`;
}

export const dated = (at, now = new Date()) => `${date(at, now)} ${clock(at)}`;

const day = (at) => wall(at).toISOString().slice(0, 10);

// A date always has its time: at 00:05 most of an incident happened yesterday.
export const moment = (at, now = new Date()) => (day(at) === day(now) ? clock(at) : dated(at, now));

export function zone(at = new Date()) {
  const minutes = offset(at);
  return minutes === 0
    ? "UTC"
    : `UTC${minutes < 0 ? "-" : "+"}${two(Math.floor(Math.abs(minutes) / 60))}:${two(Math.abs(minutes) % 60)}`;
}

export const exact = (at) => `${day(at)} ${clock(at)}:${two(wall(at).getUTCSeconds())} ${zone(at)}`;
