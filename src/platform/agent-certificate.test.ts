import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PeerCertificate } from 'node:tls'
import { checkAgentIdentity, findPlainness } from './agent-certificate.js'

const certificate = (subjectaltname: string) => ({ subject: {}, subjectaltname }) as PeerCertificate

for (const { names, isAccepted } of [
  { names: 'IP Address:10.0.0.5', isAccepted: true },
  { names: 'DNS:dsc-agent', isAccepted: true },
  { names: 'DNS:other, DNS:dsc-agent', isAccepted: true },
  { names: 'IP Address:10.0.0.6', isAccepted: false },
  { names: 'DNS:dsc-agent.example', isAccepted: false },
])
  test(`a certificate for ${names} is ${isAccepted ? '' : 'not '}that of the agent at 10.0.0.5`, () => {
    assert.equal(checkAgentIdentity('10.0.0.5', certificate(names)) === undefined, isAccepted)
  })

test('an agent that does not encrypt gets no token where an authority is named', () => {
  assert.match(findPlainness('http://10.0.0.5:7070', 'PEM')!, /does not encrypt/)
  assert.equal(findPlainness('https://10.0.0.5:7070', 'PEM'), undefined)
  assert.equal(findPlainness('http://10.0.0.5:7070', undefined), undefined)
})
