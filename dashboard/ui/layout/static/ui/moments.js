// Times in the viewer's time zone, in one format: 18:26 on the same day, 24 Nov 18:26 on other days, 24 Nov 2025 18:26
// in other years.

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const two = (number) => String(number).padStart(2, "0");

export const clock = (at) => `${two(at.getHours())}:${two(at.getMinutes())}`;

export function date(at, now = new Date()) {
  const year = at.getFullYear() === now.getFullYear() ? "" : ` ${at.getFullYear()}`;
  return `${at.getDate()} ${MONTHS[at.getMonth()]}${year}`;
}

export const dated = (at, now = new Date()) => `${date(at, now)} ${clock(at)}`;

// A date always has its time: at 00:05 most of an incident happened yesterday.
export const moment = (at, now = new Date()) => (at.toDateString() === now.toDateString() ? clock(at) : dated(at, now));

export function zone(at = new Date()) {
  const offset = -at.getTimezoneOffset();
  return offset === 0
    ? "UTC"
    : `UTC${offset < 0 ? "-" : "+"}${two(Math.floor(Math.abs(offset) / 60))}:${two(Math.abs(offset) % 60)}`;
}

export function exact(at) {
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} `
    + `${clock(at)}:${two(at.getSeconds())} ${zone(at)}`;
}
