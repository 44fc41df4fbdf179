/** Does nothing. One for all: a function of its own in each of the objects that a hold is made of would be felt. */
export function nothing(): void {}
