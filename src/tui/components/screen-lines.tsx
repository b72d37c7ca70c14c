import { Box, Text } from 'ink'
import { memo, type ReactElement } from 'react'
import { isSameLine, joinSpans, type Line, type Span } from '../view/text/styled-line.js'

/** Draws lines that are exactly as wide as the screen. Without colours, bold and inverse remain. */
export function ScreenLines(props: { lines: readonly Line[]; isColoured: boolean }): ReactElement {
  return (
    <Box flexDirection="column" flexShrink={0}>
      {props.lines.map((line, row) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a row of the screen has no identity but its place
        <ScreenLine key={row} line={joinSpans(line)} isColoured={props.isColoured} />
      ))}
    </Box>
  )
}

interface ScreenLineProps {
  readonly line: Line
  readonly isColoured: boolean
}

const ScreenLine = memo(
  ({ line, isColoured }: ScreenLineProps): ReactElement => (
    <Text wrap="truncate-end">
      {line.map((part, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a stretch of a line has no identity but its place
        <Text key={at} {...lookOf(part, { isColoured })}>
          {part.text}
        </Text>
      ))}
    </Text>
  ),
  (before, after) => before.isColoured === after.isColoured && isSameLine(before.line, after.line),
)

function lookOf(part: Span, { isColoured }: Pick<ScreenLineProps, 'isColoured'>) {
  return {
    bold: part.isBold ?? false,
    dimColor: part.isDim ?? false,
    inverse: part.isInverse ?? false,
    ...(isColoured && part.color ? { color: part.color } : {}),
  }
}
