// Why the certificate of a peer was refused, in words that say what to do.

/** By Node's code of the error; undefined where it is no matter of a certificate. Without a full stop. */
export function certificateFault(code: string): string | undefined {
  switch (code) {
    case "CERT_HAS_EXPIRED":
      return `its certificate has expired (${code}): it must be renewed there`;
    case "CERT_NOT_YET_VALID":
      return `its certificate is not valid yet (${code}): is the clock right, here and there?`;
    case "ERR_TLS_CERT_ALTNAME_INVALID":
      return `its certificate is for another name (${code}): use a name that it is for`;
    default:
      return code.includes("CERT") || code === "UNABLE_TO_VERIFY_LEAF_SIGNATURE"
        ? `its certificate is not trusted (${code}): for a private authority set NODE_EXTRA_CA_CERTS`
        : undefined;
  }
}
