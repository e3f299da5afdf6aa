// What is said where the disk has not taken something.

export const NOT_QUEUED_YET =
  "Not queued so far: the disk has not taken the first call with this key. Make it again in a moment.";
export const NOT_ON_DISK =
  "It could not be written down, and a restart may undo it. It is written again until that succeeds: look at the disk.";
