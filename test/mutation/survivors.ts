export interface Reason {
  /** Why nothing can see these, or why what sees them is not part of the run. */
  readonly why: string
  /** By {@link Mutation.name}. */
  readonly mutations: readonly string[]
}

/** Mutations that nothing notices, each with its reason. */
export const survivors: readonly Reason[] = []
