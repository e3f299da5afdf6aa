// What `POST /try` answers, line by line: a call that the operator makes from the page.

export type TryLine =
  /** The first: by it questions are answered. */
  | { readonly id: number }
  | { readonly progress: { readonly progress: number; readonly total?: number; readonly message?: string } }
  | { readonly question: { readonly id: string | number; readonly message: string; readonly schema: unknown } }
  /** The last, or an error. */
  | { readonly result: unknown }
  | { readonly error: { readonly code: number; readonly message: string } };
