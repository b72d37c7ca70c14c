import type { SyntheticNode } from './synthetic-profile.js'

/** Builds the nodes of a network; every method returns the index of the node it added. Sizes are fp32. */
class Network {
  readonly nodes: SyntheticNode[] = []

  batch(elements: number): number {
    return this.#add('batch', [], { out: elements, flops: 0 })
  }

  conv(name: string, input: number, shape: ConvShape): number {
    const { batch, inC, outC, size, kernel } = shape
    const out = batch * outC * size * size
    const params = outC * inC * kernel * kernel
    const flops = 2 * out * inC * kernel * kernel
    return this.#add(name, [input], { out, params, flops, savesInput: 'param' })
  }

  norm(name: string, input: number, channels: number): number {
    const out = this.#elements(input)
    return this.#add(name, [input], { out, params: 2 * channels, flops: 8 * out, savesInput: 'both' })
  }

  relu(name: string, input: number): number {
    const out = this.#elements(input)
    return this.#add(name, [input], { out, flops: out, savesOutput: true })
  }

  gelu(name: string, input: number): number {
    const out = this.#elements(input)
    return this.#add(name, [input], { out, flops: 8 * out, savesInput: 'both' })
  }

  linear(name: string, input: number, shape: { rows: number; inF: number; outF: number }): number {
    const { rows, inF, outF } = shape
    const flops = 2 * rows * inF * outF
    return this.#add(name, [input], { out: rows * outF, params: inF * outF, flops, savesInput: 'param' })
  }

  /** Flash attention: reads q, k and v in one tensor, saves them and its output. */
  attention(name: string, qkv: number, shape: { rows: number; width: number; context: number }): number {
    const { rows, width, context } = shape
    const flops = 4 * rows * context * width
    return this.#add(name, [qkv], { out: rows * width, flops, savesInput: 'both', savesOutput: true })
  }

  add(name: string, inputs: readonly number[]): number {
    const out = this.#elements(inputs[0]!)
    return this.#add(name, inputs, { out, flops: out })
  }

  concat(name: string, inputs: readonly number[]): number {
    const out = inputs.reduce((sum, input) => sum + this.#elements(input), 0)
    return this.#add(name, inputs, { out, flops: out })
  }

  resize(name: string, input: number, factor: number): number {
    const out = this.#elements(input) * factor
    return this.#add(name, [input], { out, flops: out, savesInput: factor < 1 ? 'both' : 'none' })
  }

  #elements(node: number): number {
    return this.nodes[node]!.outBytes / 4
  }

  #add(
    name: string,
    inputs: readonly number[],
    node: {
      out: number
      params?: number
      flops: number
      savesInput?: SyntheticNode['savesInput']
      savesOutput?: boolean
    },
  ): number {
    const { out, params = 0, flops, savesInput = 'none', savesOutput = false } = node
    const bytes = { outBytes: 4 * Math.ceil(out), paramBytes: 4 * params }
    return this.nodes.push({ name, inputs, ...bytes, flops, savesInput, savesOutput }) - 1
  }
}

interface ConvShape {
  readonly batch: number
  readonly inC: number
  readonly outC: number
  /** Height and width of the output. */
  readonly size: number
  readonly kernel: number
}

/** ResNet-50 at 224×224 pixels. */
export function resnet50(batch: number): SyntheticNode[] {
  const net = new Network()
  const conv = (name: string, input: number, shape: Omit<ConvShape, 'batch'>) =>
    net.norm(`${name}.bn`, net.conv(name, input, { batch, ...shape }), shape.outC)
  let x = net.batch(batch * 3 * 224 * 224)
  x = net.relu('relu', conv('conv1', x, { inC: 3, outC: 64, size: 112, kernel: 7 }))
  x = net.resize('maxpool', x, 1 / 4)
  let inC = 64
  for (const [stage, blocks] of [3, 4, 6, 3].entries()) {
    const width = 64 * 2 ** stage
    const size = 56 / 2 ** stage
    for (let block = 0; block < blocks; block++) {
      const at = `layer${stage + 1}.${block}`
      const one = net.relu(`${at}.relu1`, conv(`${at}.conv1`, x, { inC, outC: width, size, kernel: 1 }))
      const two = net.relu(
        `${at}.relu2`,
        conv(`${at}.conv2`, one, { inC: width, outC: width, size, kernel: 3 }),
      )
      const three = conv(`${at}.conv3`, two, { inC: width, outC: 4 * width, size, kernel: 1 })
      const skip = block === 0 ? conv(`${at}.downsample`, x, { inC, outC: 4 * width, size, kernel: 1 }) : x
      x = net.relu(`${at}.relu3`, net.add(`${at}.add`, [three, skip]))
      inC = 4 * width
    }
  }
  x = net.resize('avgpool', x, 1 / 49)
  net.linear('fc', x, { rows: batch, inF: 2048, outF: 1000 })
  return net.nodes
}

/** A GPT with flash attention. */
export function gpt(shape: {
  readonly batch: number
  readonly context: number
  readonly width: number
  readonly blocks: number
  readonly vocabulary: number
}): SyntheticNode[] {
  const { batch, context, width, blocks, vocabulary } = shape
  const rows = batch * context
  const net = new Network()
  let x = net.linear('embedding', net.batch(rows), { rows, inF: 1, outF: width })
  for (let block = 0; block < blocks; block++) {
    const at = `h.${block}`
    const qkv = net.linear(`${at}.qkv`, net.norm(`${at}.ln1`, x, width), {
      rows,
      inF: width,
      outF: 3 * width,
    })
    const mixed = net.attention(`${at}.attn`, qkv, { rows, width, context })
    const out = net.linear(`${at}.proj`, mixed, { rows, inF: width, outF: width })
    x = net.add(`${at}.add1`, [out, x])
    const wide = net.linear(`${at}.fc1`, net.norm(`${at}.ln2`, x, width), {
      rows,
      inF: width,
      outF: 4 * width,
    })
    const narrow = net.linear(`${at}.fc2`, net.gelu(`${at}.gelu`, wide), {
      rows,
      inF: 4 * width,
      outF: width,
    })
    x = net.add(`${at}.add2`, [narrow, x])
  }
  net.linear('head', net.norm('ln_f', x, width), { rows, inF: width, outF: vocabulary })
  return net.nodes
}

/** A U-Net of four levels at `size`×`size` pixels: its largest maps are needed first and last. */
export function unet(batch: number, size: number): SyntheticNode[] {
  const net = new Network()
  const double = (name: string, input: number, shape: { inC: number; outC: number; size: number }) => {
    let x = input
    for (const [at, inC] of [shape.inC, shape.outC].entries()) {
      const conv = net.conv(`${name}.conv${at}`, x, { ...shape, batch, inC, kernel: 3 })
      x = net.relu(`${name}.relu${at}`, net.norm(`${name}.bn${at}`, conv, shape.outC))
    }
    return x
  }
  let x = double('enc0', net.batch(batch * 3 * size * size), { inC: 3, outC: 64, size })
  const skips = [x]
  for (let level = 1; level <= 4; level++) {
    const inC = 64 * 2 ** (level - 1)
    x = double(`enc${level}`, net.resize(`pool${level}`, x, 1 / 4), {
      inC,
      outC: 2 * inC,
      size: size / 2 ** level,
    })
    skips.push(x)
  }
  for (let level = 3; level >= 0; level--) {
    const outC = 64 * 2 ** level
    const here = size / 2 ** level
    const up = net.conv(`up${level}`, net.resize(`resize${level}`, x, 4), {
      batch,
      inC: 2 * outC,
      outC,
      size: here,
      kernel: 2,
    })
    x = double(`dec${level}`, net.concat(`cat${level}`, [skips[level]!, up]), {
      inC: 2 * outC,
      outC,
      size: here,
    })
  }
  net.conv('head', x, { batch, inC: 64, outC: 2, size, kernel: 1 })
  return net.nodes
}

/** `count` equal layers: the textbook case of the reference study. */
export function uniform(count: number, bytes: number): SyntheticNode[] {
  const net = new Network()
  let x = net.batch(bytes / 4)
  for (let layer = 0; layer < count; layer++) {
    x = net.gelu(`layer${layer}`, x)
  }
  return net.nodes
}
