// The limit for start and memory: a node:http server that does nothing.

import { serve } from "./serve.mjs";

serve((_req, res) => void res.end());
