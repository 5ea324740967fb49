/** What went wrong, in words for the person at the page: what it was, and what to do about it. */

export class Problem extends Error {
  /**
   * @param {string} message
   * @param {string} [remedy]
   * @param {number} [status] the HTTP status; 0 when nothing answered
   */
  constructor(message, remedy = "", status = 422) {
    super(message);
    this.remedy = remedy;
    this.status = status;
  }

  /** Whether no server answered at all. */
  get unreachable() {
    return this.status === 0;
  }
}
