// The band between the ends of an interval, per bin; bins without an interval have no band.

export const shade = {
  id: "shade",
  beforeDatasetsDraw(chart) {
    const { ctx, chartArea: area, scales: { x, y } } = chart;
    ctx.save();
    ctx.beginPath();
    ctx.rect(area.left, area.top, area.right - area.left, area.bottom - area.top);
    ctx.clip();
    for (const set of chart.data.datasets) {
      ctx.fillStyle = set.backgroundColor;
      ctx.globalAlpha = 0.15;
      for (const run of runs(set)) {
        ctx.beginPath();
        run.forEach(
          (i, n) => ctx[n ? "lineTo" : "moveTo"](x.getPixelForValue(set.data[i].x), y.getPixelForValue(set.high[i]))
        );
        [...run].reverse().forEach(
          (i) => ctx.lineTo(x.getPixelForValue(set.data[i].x), y.getPixelForValue(set.low[i]))
        );
        if (run.length === 1)
          whisker(
            ctx,
            x.getPixelForValue(set.data[run[0]].x),
            y.getPixelForValue(set.low[run[0]]),
            y.getPixelForValue(set.high[run[0]])
          );
        ctx.closePath();
        ctx.fill();
      }
    }
    ctx.restore();
  },
};

// A single bin has no width: draw four pixels.
function whisker(ctx, at, low, high) {
  ctx.rect(at - 2, high, 4, low - high);
}

function runs(set) {
  const found = [];
  (set.high || []).forEach((value, i) => {
    if (value === null) return;
    const last = found[found.length - 1];
    if (last && last[last.length - 1] === i - 1) last.push(i);
    else found.push([i]);
  });
  return found;
}
