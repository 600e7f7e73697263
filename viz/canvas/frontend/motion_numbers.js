// Numbers and sentences of the moving picture.

const POWERS = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

/** A number with four significant digits; a very small or large one as a multiple of a power of ten. */
function significant(value) {
  if (!Number.isFinite(value)) return numberText(value, 0);
  const size = value === 0 ? 0 : Math.floor(Math.log10(Math.abs(value)));
  if (size >= -5 && size < 6) return numberText(value, Math.max(0, 3 - size));
  const [digits, power] = value.toExponential(3).split("e");
  return `${numberText(Number(digits), 3)}·10${[...String(Number(power))].map((sign) => POWERS[sign]).join("")}`;
}

/** A text in lines of at most `width`. Where there are no blanks, a line breaks between any two characters, but not before punctuation. */
function brokenInto(pen, text, width) {
  const pieces = text.split(/(?<=\s)|(?<=[\u3000-\u9fff\uff00-\uffef])(?![、。，；：！？）」』》])/u);
  const lines = [""];
  for (const piece of pieces) {
    if (pen.measureText(lines.at(-1) + piece.trimEnd()).width <= width) lines[lines.length - 1] += piece;
    else lines.push(piece);
  }
  return lines.map((line) => line.trimEnd());
}
