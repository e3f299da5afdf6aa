// How much of a long list a verb shows at once. Apart from the verbs, since the help has it without them.

/** A screen of a long list. */
export const USUAL_LIMIT = 50;
/** As many as a gateway answers at a time. */
export const MAX_LIMIT = 1_000;
