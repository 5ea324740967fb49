/** Plays frames that may still be arriving: play, pause, seek, speed. Knows when to show a frame, not what is in it. */

const FRAME_MILLISECONDS = 420;
// A long search has many frames: whoever is this far behind plays faster, so that waiting never takes long.
const COMFORTABLE_BACKLOG = 6;

export class Player {
  /** How many frames there are by now. */
  length = 0;
  index = 0;
  speed = 1;
  playing = true;
  /** Whether no more frames will come. */
  complete = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  timer;

  /**
   * @param {(player: Player) => void} onChange
   * @param {{matches: boolean}} stillness whether motion is unwanted: then frames are not played one by one
   */
  constructor(onChange, stillness) {
    this.onChange = onChange;
    this.stillness = stillness;
  }

  /** Forget all frames, and play those that come. */
  reset() {
    this.length = this.index = 0;
    this.complete = false;
    this.playing = true;
    this.settle();
  }

  get atEnd() {
    return this.index >= this.length - 1;
  }

  /** @param {number} length */
  extend(length) {
    this.length = Math.max(this.length, length);
    if (this.playing && this.stillness.matches) this.index = this.length - 1;
    this.settle();
  }

  /** No more frames will come. */
  finish() {
    this.complete = true;
    this.settle();
  }

  /**
   * Shows the last of frames that are all there, without playing them.
   *
   * @param {number} length
   */
  jump(length) {
    this.length = length;
    this.index = length - 1;
    this.complete = true;
    this.playing = false;
    this.settle();
  }

  /** @param {number} index */
  seek(index) {
    this.index = Math.max(0, Math.min(index, this.length - 1));
    this.pause();
  }

  pause() {
    this.playing = false;
    this.settle();
  }

  toggle() {
    if (this.playing) return this.pause();
    if (this.atEnd) this.index = 0;
    this.playing = true;
    this.settle();
  }

  settle() {
    if (this.atEnd && this.complete) this.playing = false;
    if (!this.playing || this.atEnd) {
      clearTimeout(this.timer);
      this.timer = undefined;
    } else if (this.timer === undefined) {
      const haste = Math.max(1, (this.length - this.index) / COMFORTABLE_BACKLOG);
      this.timer = setTimeout(() => this.advance(), FRAME_MILLISECONDS / (this.speed * haste));
    }
    this.onChange(this);
  }

  advance() {
    this.timer = undefined;
    this.index += 1;
    this.settle();
  }
}
