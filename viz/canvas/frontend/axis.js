// Numbers on an axis.

/** The smallest of 1, 2, 5, 10, 20 … (or 0.5, 0.2 …) that is at least `rough`. */
function stepOf(rough) {
  const unit = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((times) => times * unit).find((each) => each >= rough * (1 - 1e-9));
}

/** The step of the labels that are drawn where each needs the room of `rough` labels: of numbers that count on, a round one. */
function stepOfLabels(labels, rough) {
  const [first, last] = [Number(labels[0]), Number(labels.at(-1))];
  const counts = Number.isInteger(first) && last === first + labels.length - 1 && Number(labels[1]) === first + 1;
  return { counts, step: counts ? stepOf(Math.max(1, rough)) : Math.max(1, Math.ceil(rough)) };
}

/** Whether a label is drawn, given the step of all. */
function isNamed(labels, place, { counts, step }) {
  return (counts ? Number(labels[place]) : place) % step === 0;
}

/** The multiples of a step between two numbers. */
function multiples(step, low, high) {
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.max(0, Math.floor(high / step + 1e-9) - first + 1) }, (_, at) => (first + at) * step);
}
