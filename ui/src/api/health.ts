// SPDX-License-Identifier: MIT
/** Whether the server answers. It is asked seldom while it does, and sooner when it stops. */
import { useQuery } from "@tanstack/react-query";
import { ApiError } from "@/api/client";

/** The answer of `/health`. */
export interface Health {
  status: string;
  database: string;
  store: string;
  engine: string;
  version: string;
}

/** `dead`: nothing answers. `sick`: it answers, but a part of it does not work. */
export type HealthState = "unknown" | "ok" | "sick" | "dead";

const WELL_MS = 30_000;
const FIRST_MS = 1_000;
const MOST_MS = 15_000;
const ANSWER_MS = 10_000;

/** How long to wait before the next look, after so many failures one after the other. */
export function nextLook(failures: number): number {
  return failures === 0 ? WELL_MS : Math.min(FIRST_MS * 2 ** (failures - 1), MOST_MS);
}

/** One look; 503 is an answer, too. */
export async function lookAtHealth(signal?: AbortSignal): Promise<Health> {
  const limit = AbortSignal.timeout(ANSWER_MS);
  let response: Response;
  try {
    response = await fetch("/health", {
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
      cache: "no-store",
    });
  } catch (cause) {
    if (signal?.aborted) throw cause;
    throw new ApiError(0, cause instanceof Error ? cause.message : String(cause));
  }
  if (!response.ok && response.status !== 503)
    throw new ApiError(response.status, response.statusText);
  return (await response.json()) as Health;
}

let failures = 0;

/** The server's state, kept up to date; `retry` looks at once. */
export function useHealth() {
  const query = useQuery({
    queryKey: ["health"],
    queryFn: async ({ signal }) => {
      try {
        const health = await lookAtHealth(signal);
        failures = 0;
        return health;
      } catch (error) {
        if (!signal.aborted) failures += 1;
        throw error;
      }
    },
    retry: false,
    refetchInterval: () => nextLook(failures),
    refetchOnReconnect: "always",
    refetchOnWindowFocus: true,
    networkMode: "always",
  });
  let state: HealthState = "unknown";
  if (query.isError) state = "dead";
  else if (query.data) state = query.data.status === "healthy" ? "ok" : "sick";
  return { state, health: query.data, retry: query.refetch, checking: query.isFetching };
}
