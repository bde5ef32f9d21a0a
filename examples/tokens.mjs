// A language model behind a limit of 1,000 tokens a minute for each user. How many tokens an answer takes is
// known only afterwards: the most that it may take is reserved, and what it did not take is given back.
//
//   node examples/tokens.mjs
//   curl -s http://127.0.0.1:3000/ -H 'x-user: alice' -d '{"prompt":"Tell me of mills","maxTokens":400}'
import express from 'express'
import { createLimiter } from 'millrace'

const tokens = createLimiter({ name: 'tokens', limit: 1_000, window: '1m' })

/** Stands for a model: answers with as many words as the prompt has letters, at most `maxTokens`. */
async function complete(prompt, maxTokens) {
  const words = Array.from(prompt.slice(0, maxTokens), (letter) => `${letter}...`)
  return { text: words.join(' '), usedTokens: words.length }
}

const app = express()
app.use(express.json())
app.post('/', async (request, response) => {
  const { prompt, maxTokens } = request.body
  if (typeof prompt !== 'string' || !Number.isInteger(maxTokens) || maxTokens < 1) {
    return response.status(400).send('a prompt and maxTokens\n')
  }
  const reservation = tokens.reserve(request.get('x-user') ?? 'nobody', maxTokens)
  const { decision } = reservation
  if (!decision.allowed) {
    return response.status(429).set('Retry-After', String(decision.retryAfterSeconds)).json(decision)
  }
  let usedTokens = 0 // stays 0 if the model fails: then nothing is charged
  try {
    const answer = await complete(prompt, maxTokens)
    usedTokens = answer.usedTokens
    response.json(answer)
  } finally {
    reservation.commit(usedTokens)
  }
})

const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`)
})
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => server.close())
