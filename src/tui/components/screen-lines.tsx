import { Box, Text } from 'ink'
import { memo, type ReactElement } from 'react'
import { isSameLine, joinSpans, type Line } from '../view/text/styled-line.js'
import { lookOf, type ThemeName } from '../view/text/theme.js'

/** Draws lines that are exactly as wide as the screen; without a theme, without colours. */
export function ScreenLines(props: { lines: readonly Line[]; theme: ThemeName | undefined }): ReactElement {
  return (
    <Box flexDirection="column" flexShrink={0}>
      {props.lines.map((line, row) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a row of the screen has no identity but its place
        <ScreenLine key={row} line={joinSpans(line)} theme={props.theme} />
      ))}
    </Box>
  )
}

interface ScreenLineProps {
  readonly line: Line
  readonly theme: ThemeName | undefined
}

const ScreenLine = memo(
  ({ line, theme }: ScreenLineProps): ReactElement => (
    <Text wrap="truncate-end">
      {line.map((part, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a stretch of a line has no identity but its place
        <Text key={at} {...lookOf(part, theme)}>
          {part.text}
        </Text>
      ))}
    </Text>
  ),
  (before, after) => before.theme === after.theme && isSameLine(before.line, after.line),
)
