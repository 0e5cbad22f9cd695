/** Failures that Open Responses has a name for. */
export const responsesErrors = { previous_response_not_found: 404 } as const;
