// The gateway as the page sees it: one WebSocket for what happens, fetch for what is asked now and then.
// It comes back by itself when the gateway does, and subscribes again.

const FIRST_WAIT = 500; // ms before the first attempt to come back; doubled up to LONGEST_WAIT
const LONGEST_WAIT = 10000;

export class Connection extends EventTarget {
  constructor(origin = location.origin) {
    super();
    this.origin = origin;
    this.token = sessionStorage.getItem('contrada-token') ?? '';
    this.roles = new Set();
    this.subscriptions = new Map(); // id: what was asked for, and asked again after an interruption
    this._answers = new Map();
    this._ref = 0;
    this._wait = FIRST_WAIT;
  }

  open() {
    const socket = new WebSocket(`${this.origin.replace(/^http/, 'ws')}/v1/socket`);
    this._socket = socket;
    socket.onopen = () => this._greet().catch((error) => this._tell('refused', error.problem ?? { detail: String(error) }));
    socket.onmessage = (event) => this._hear(JSON.parse(event.data));
    socket.onclose = () => {
      for (const { fail } of this._answers.values()) fail(new Error('the connection is gone'));
      this._answers.clear();
      this._tell('gone');
      setTimeout(() => this.open(), this._wait);
      this._wait = Math.min(LONGEST_WAIT, this._wait * 2);
    };
  }

  async enter(token) {
    this.token = token;
    const welcome = await this._greet();
    sessionStorage.setItem('contrada-token', token);
    return welcome;
  }

  async _greet() {
    const welcome = await this.ask({ type: 'hello', ...(this.token ? { token: this.token } : {}) });
    this._wait = FIRST_WAIT;
    this.roles = new Set(welcome.roles);
    this._tell(this.roles.size ? 'welcome' : 'stranger', welcome);
    for (const [id, wish] of this.subscriptions) {
      this.ask({ type: 'subscribe', id, ...wish }).then((answer) => this._tell('subscribed', answer), (error) => this._tell('lost', { id, error }));
    }
    return welcome;
  }

  /** Say something and wait for the answer; an Error with the problem if it says no. */
  ask(message) {
    return new Promise((done, fail) => {
      if (this._socket?.readyState !== WebSocket.OPEN) {
        fail(new Error('the gateway is not there'));
        return;
      }
      const ref = ++this._ref;
      this._answers.set(ref, { done, fail });
      this._socket.send(JSON.stringify({ ...message, ref }));
    });
  }

  async subscribe(id, wish) {
    const answer = await this.ask({ type: 'subscribe', id, ...wish });
    this.subscriptions.set(id, wish);
    return answer;
  }

  async unsubscribe(id) {
    this.subscriptions.delete(id);
    await this.ask({ type: 'unsubscribe', id });
  }

  view(id, view) {
    const wish = this.subscriptions.get(id);
    if (wish) Object.assign(wish, view);
    return this.ask({ type: 'view', id, ...view });
  }

  /** A question by HTTP. */
  async get(path, query = {}) {
    const url = new URL(path, this.origin);
    for (const [name, value] of Object.entries(query)) for (const each of [value].flat()) url.searchParams.append(name, each);
    const answer = await fetch(url, { headers: this.token ? { Authorization: `Bearer ${this.token}` } : {} });
    const document = await answer.json();
    if (!answer.ok) throw Object.assign(new Error(document.detail), { problem: document });
    return document;
  }

  _hear(message) {
    const answer = message.ref ? this._answers.get(message.ref) : undefined;
    if (answer) {
      this._answers.delete(message.ref);
      if (message.type === 'error') answer.fail(Object.assign(new Error(message.problem.detail), { problem: message.problem }));
      else answer.done(message);
    } else {
      this._tell(message.type, message);
    }
  }

  _tell(kind, detail = null) {
    this.dispatchEvent(new CustomEvent(kind, { detail }));
  }
}
