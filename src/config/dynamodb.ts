export function dynamoConfig(): never {
  throw new Error('in progress')
}
