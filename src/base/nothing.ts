/** A callback that does nothing. Shared, because a new closure would cost on every acquisition. */
export function nothing(): void {}
