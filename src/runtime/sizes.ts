// The units in which bounds of bytes are written.

export const KIB = 1024;
export const MIB = 1024 * KIB;
