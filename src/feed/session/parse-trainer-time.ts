import type { StepTimes, TrainerTime, WorkerTime } from '../batches/trainer-time.js'
import { wholeNumber } from './hello.js'

/** The message `waits`. Throws FEED_PROTOCOL if a field is missing or no whole number. */
export function parseTrainerTime(raw: Readonly<Record<string, unknown>>, payload?: Buffer): TrainerTime {
  return {
    ...(payload && payload.length > 0 && { steps: parseSteps(wholeNumber(raw, 'firstStep', 0), payload) }),
    rank: wholeNumber(raw, 'rank'),
    gpus: Math.max(1, wholeNumber(raw, 'gpus', 1)),
    elapsedMs: wholeNumber(raw, 'elapsedMs'),
    feedMs: wholeNumber(raw, 'feedMs'),
    transformMs: wholeNumber(raw, 'transformMs'),
    startMs: wholeNumber(raw, 'startMs'),
    loaderMs: wholeNumber(raw, 'loaderMs'),
  }
}

function parseSteps(first: number, payload: Buffer): StepTimes {
  const tookUs: number[] = []
  const waitedUs: number[] = []
  for (let at = 0; at + 8 <= payload.length; at += 8) {
    tookUs.push(payload.readUInt32LE(at))
    waitedUs.push(payload.readUInt32LE(at + 4))
  }
  return { first, tookUs, waitedUs }
}

/** The fields of `made`; otherwise as above. */
export function parseWorkerTime(raw: Readonly<Record<string, unknown>>): WorkerTime {
  return {
    rank: wholeNumber(raw, 'rank'),
    madeMs: wholeNumber(raw, 'madeMs'),
    waitedMs: wholeNumber(raw, 'waitedMs'),
  }
}
