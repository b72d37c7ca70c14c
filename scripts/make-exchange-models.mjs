// Writes the tensor lists of three well-known models to fixtures/exchange/: shapes only, no weights.
// Each layer carries its multiply-adds and output elements for one sample, from which a backward pass is modelled.
import { mkdirSync, writeFileSync } from 'node:fs'

const layer = (name, flops, activations, tensors) => ({ name, flops, activations, tensors })
const tensor = (name, ...shape) => ({ name, shape })

/** Convolution with batch norm; `extra` holds tensors that are computed in the same layer (a block's shortcut). */
function convolution(name, size, from, to, kernel, extra) {
  const weights = [
    tensor(`${name}.weight`, to, from, kernel, kernel),
    tensor(`${name}.bn.weight`, to),
    tensor(`${name}.bn.bias`, to),
  ]
  const flops = size * size * from * to * kernel * kernel + (extra?.flops ?? 0)
  return layer(name, flops, 2 * size * size * to, [...weights, ...(extra?.tensors ?? [])])
}

function resnet152() {
  const layers = [convolution('conv1', 112, 3, 64, 7)]
  let from = 64
  const stages = [
    [3, 64, 56],
    [8, 128, 28],
    [36, 256, 14],
    [3, 512, 7],
  ]
  stages.forEach(([blocks, width, size], stage) => {
    for (let block = 0; block < blocks; block++) {
      const name = `layer${stage + 1}.${block}`
      const shortcut = block === 0 ? convolution(`${name}.downsample`, size, from, width * 4, 1) : undefined
      const inner = block === 0 && stage > 0 ? size * 2 : size
      layers.push(convolution(`${name}.conv1`, inner, from, width, 1))
      layers.push(convolution(`${name}.conv2`, size, width, width, 3))
      layers.push(convolution(`${name}.conv3`, size, width, width * 4, 1, shortcut))
      from = width * 4
    }
  })
  layers.push(layer('fc', 2048 * 1000, 1000, [tensor('fc.weight', 1000, 2048), tensor('fc.bias', 1000)]))
  return layers
}

function bertLarge(tokens = 128, hidden = 1024, heads = 4096) {
  const norm = (name) => [tensor(`${name}.weight`, hidden), tensor(`${name}.bias`, hidden)]
  const linear = (name, to, from) => [tensor(`${name}.weight`, to, from), tensor(`${name}.bias`, to)]
  const layers = [
    layer('embeddings', tokens * hidden * 4, tokens * hidden * 3, [
      tensor('embeddings.word', 30522, hidden),
      tensor('embeddings.position', 512, hidden),
      tensor('embeddings.type', 2, hidden),
      ...norm('embeddings.norm'),
    ]),
  ]
  for (let index = 0; index < 24; index++) {
    const name = `encoder.${index}`
    const attention = ['query', 'key', 'value', 'output'].flatMap((part) =>
      linear(`${name}.${part}`, hidden, hidden),
    )
    const attentionFlops = 4 * tokens * hidden * hidden + 2 * tokens * tokens * hidden
    layers.push(
      layer(`${name}.attention`, attentionFlops, tokens * hidden * 6 + 2 * 16 * tokens * tokens, [
        ...attention,
        ...norm(`${name}.attention.norm`),
      ]),
    )
    const flops = tokens * hidden * heads
    layers.push(
      layer(`${name}.intermediate`, flops, tokens * heads * 2, linear(`${name}.intermediate`, heads, hidden)),
    )
    layers.push(
      layer(`${name}.output`, flops, tokens * hidden * 3, [
        ...linear(`${name}.output.dense`, hidden, heads),
        ...norm(`${name}.output.norm`),
      ]),
    )
  }
  // The decoder of the masked-word head shares the word embedding: its own tensor is only the bias.
  const headFlops = tokens * hidden * hidden + tokens * hidden * 30522
  layers.push(
    layer('head', headFlops, tokens * (2 * hidden + 30522), [
      ...linear('head.transform', hidden, hidden),
      ...norm('head.norm'),
      tensor('head.decoder.bias', 30522),
    ]),
  )
  return layers
}

function vgg16() {
  const layers = []
  let from = 3
  const stages = [
    [2, 64, 224],
    [2, 128, 112],
    [3, 256, 56],
    [3, 512, 28],
    [3, 512, 14],
  ]
  stages.forEach(([count, width, size], stage) => {
    for (let index = 0; index < count; index++) {
      const name = `conv${stage + 1}.${index}`
      const tensors = [tensor(`${name}.weight`, width, from, 3, 3), tensor(`${name}.bias`, width)]
      layers.push(layer(name, size * size * from * width * 9, size * size * width, tensors))
      from = width
    }
  })
  const dense = [
    [4096, 25088],
    [4096, 4096],
    [1000, 4096],
  ]
  dense.forEach(([to, inputs], index) => {
    const name = `fc${index + 6}`
    layers.push(
      layer(name, to * inputs, to, [tensor(`${name}.weight`, to, inputs), tensor(`${name}.bias`, to)]),
    )
  })
  return layers
}

mkdirSync('fixtures/exchange', { recursive: true })
for (const [name, layers] of [
  ['resnet-152', resnet152()],
  ['bert-large', bertLarge()],
  ['vgg-16', vgg16()],
]) {
  const tensors = layers.flatMap((entry) => entry.tensors)
  const elements = tensors.reduce((sum, { shape }) => sum + shape.reduce((a, b) => a * b, 1), 0)
  const lines = layers.map((entry) => `    ${JSON.stringify(entry)}`).join(',\n')
  writeFileSync(
    `fixtures/exchange/${name}.json`,
    `{\n  "format": "dsc.exchange.model/1",\n  "model": "${name}",\n  "layers": [\n${lines}\n  ]\n}\n`,
  )
  process.stdout.write(
    `${name}: ${layers.length} layers, ${tensors.length} tensors, ${elements} parameters\n`,
  )
}
