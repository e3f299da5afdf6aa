// Why the certificate of a peer was refused, in words that say what to do.

interface CertificateFault {
  /** Without a full stop. */
  readonly what: string;
  readonly remedy: string;
}

/** So much is shown of the names that a certificate is for: some have hundreds. */
const MAX_NAMES_CHARACTERS = 120;

/** By Node's code of the error; undefined where it is no matter of a certificate. */
export function certificateFault(code: string, error?: Error): CertificateFault | undefined {
  switch (code) {
    case "CERT_HAS_EXPIRED":
      return { what: `its certificate has expired (${code})`, remedy: "It must be renewed there." };
    case "CERT_NOT_YET_VALID":
      return { what: `its certificate is not valid yet (${code})`, remedy: "Is the clock right, here and there?" };
    case "ERR_TLS_CERT_ALTNAME_INVALID": {
      const names = namesIn(error);
      return names === undefined
        ? { what: `its certificate is for another name (${code})`, remedy: "Use a name that it is for." }
        : {
            what: `its certificate is for ${names}, and not for this name (${code})`,
            remedy: "Use a name that it is for.",
          };
    }
    default: {
      if (!code.includes("CERT") && code !== "UNABLE_TO_VERIFY_LEAF_SIGNATURE") return undefined;
      const remedy = "For a private authority set NODE_EXTRA_CA_CERTS to its file.";
      return { what: `its certificate is not trusted (${code})`, remedy };
    }
  }
}

/** The names that a certificate is for, as Node tells them (`DNS:a.example, IP Address:10.0.0.1`). */
function namesIn(error: Error | undefined): string | undefined {
  const { cert } = (error ?? {}) as { cert?: { subjectaltname?: unknown } };
  const names = cert?.subjectaltname;
  if (typeof names !== "string") return undefined;
  const plain = names.replace(/(?:^|(?<=, ))(?:DNS|IP Address):/g, "").replace(/[^\x20-\x7e]/g, "?");
  return plain.length <= MAX_NAMES_CHARACTERS ? plain : `${plain.slice(0, MAX_NAMES_CHARACTERS)}…`;
}
