/** Where there is nothing to undo or to tell. One for all: on the way of every acquisition a new closure would cost. */
export function nothing(): void {}
