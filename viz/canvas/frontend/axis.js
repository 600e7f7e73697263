// Numbers on an axis.

/** The smallest of 1, 2, 5, 10, 20 … (or 0.5, 0.2 …) that is at least `rough`. */
function stepOf(rough) {
  const unit = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((times) => times * unit).find((each) => each >= rough * (1 - 1e-9));
}

/** The multiples of a step between two numbers. */
function multiples(step, low, high) {
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.max(0, Math.floor(high / step + 1e-9) - first + 1) }, (_, at) => (first + at) * step);
}
