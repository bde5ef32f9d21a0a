import type { AlgorithmJudges } from './algorithm-judges.js'

export function wordJudges(): AlgorithmJudges {
  throw new Error('none')
}
