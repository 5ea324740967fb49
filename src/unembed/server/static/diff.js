/** Compares two texts word by word, without regard to case, accents or punctuation: that is how MiniLM reads them. */

/**
 * @typedef {"same" | "moved" | "near" | "lost" | "between"} Kind `same`: in both, in this order; `moved`: in both, elsewhere;
 *   `near`: another form is in both, which only the server says; `lost`: in this text only; `between`: spaces and punctuation
 * @typedef {{text: string, kind: Kind}} Piece
 */

/**
 * @param {string} original
 * @param {string} recovered
 * @returns {[Piece[], Piece[]]} both texts in pieces
 */
export function compareWords(original, recovered) {
  const [ours, theirs] = [split(original), split(recovered)];
  const [a, b] = [words(ours), words(theirs)];
  const pairs = commonSubsequence(a, b);
  const [left, right] = [new Set(a.keys()), new Set(b.keys())];
  /** @type {[Kind[], Kind[]]} */
  const kinds = [a.map(() => "lost"), b.map(() => "lost")];
  for (const [i, j] of pairs) {
    kinds[0][i] = kinds[1][j] = "same";
    left.delete(i);
    right.delete(j);
  }
  for (const i of left) {
    const j = [...right].find((index) => a[i] === b[index]);
    if (j === undefined) continue;
    kinds[0][i] = kinds[1][j] = "moved";
    right.delete(j);
  }
  return [label(ours, kinds[0]), label(theirs, kinds[1])];
}

/** @param {string} text */
function split(text) {
  return text.split(/([\p{L}\p{N}]+)/u).map((part, index) => ({ text: part, word: index % 2 === 1 }));
}

/** @param {{text: string, word: boolean}[]} parts */
function words(parts) {
  return parts.filter((part) => part.word).map((part) => part.text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase());
}

/**
 * @param {{text: string, word: boolean}[]} parts
 * @param {Kind[]} kinds one per word
 * @returns {Piece[]}
 */
function label(parts, kinds) {
  let next = 0;
  return parts
    .map((part) => ({ text: part.text, kind: part.word ? kinds[next++] : /** @type {Kind} */ ("between") }))
    .filter((piece) => piece.text);
}

/**
 * @param {string[]} a
 * @param {string[]} b
 * @returns {[number, number][]} indices of equal words, in order in both
 */
function commonSubsequence(a, b) {
  const longest = Array.from({ length: a.length + 1 }, () => new Array(b.length + 1).fill(0));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      longest[i][j] = a[i] === b[j] ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
    }
  }
  /** @type {[number, number][]} */
  const pairs = [];
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) pairs.push([i++, j++]);
    else if (longest[i + 1][j] >= longest[i][j + 1]) i++;
    else j++;
  }
  return pairs;
}
