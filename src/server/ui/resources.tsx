import { useEffect, useRef } from 'preact/hooks'
import { Since } from './clock.js'
import { EmptySpace, Nothing } from './empty.js'
import { Filters } from './filters.js'
import { countText } from './format.js'
import { Problem } from './problem.js'
import { useResourceList } from './resource-list.js'
import { ResourceRow, ROW_PX } from './resource-row.js'
import { isFiltering, NO_FILTER } from './route.js'
import { useSession } from './session.js'
import { useNarrow, Virtual } from './virtual.js'

/** All resources of the space, the most contended first. */
export function ResourcesView() {
  const { route, info, go } = useSession()
  const { pages, totals, problem, see } = useResourceList()
  const search = useRef<HTMLInputElement>(null)
  const rows = useRef<HTMLDivElement>(null)
  const isNarrow = useNarrow()
  const rowPx = isNarrow ? ROW_PX.narrow : ROW_PX.wide

  useEffect(() => {
    document.title = `${totals?.waiting ? `(${totals.waiting}) ` : ''}Holdfast`
  }, [totals?.waiting])

  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const isTyping = (event.target as HTMLElement).matches('input, select, textarea')
      if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey) return
      event.preventDefault()
      search.current?.focus()
      search.current?.select()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])

  const clear = (): void => go({ filter: { ...NO_FILTER, sort: route.filter.sort } }, false)
  const enter = (): void => rows.current?.querySelector<HTMLElement>('[data-row][tabindex="0"]')?.focus()
  const { total } = pages
  const isEmpty = total === 0
  return (
    <>
      <h1 class="unseen">Resources</h1>
      <dl class="figures" aria-live="off">
        <Figure title="Held" value={totals ? countText(totals.held) : '–'} />
        <Figure title="Waiting" value={totals ? countText(totals.waiting) : '–'} isHot={!!totals?.waiting} />
        <Figure title="Longest wait" value={<Since ms={totals?.waitSinceMs ?? null} />} />
        <Figure title="Store" value={info.store} isText />
      </dl>
      <Filters searchField={search} found={total} onEnter={enter} />
      <Problem text={total === null ? problem : null} />
      {isEmpty && !isFiltering(route.filter) && <EmptySpace space={route.space || info.space} />}
      {isEmpty && isFiltering(route.filter) && <Nothing onClear={clear} />}
      {!isEmpty && (
        <div class="rows" role="table" aria-label="Resources" aria-rowcount={(total ?? 0) + 1} ref={rows}>
          <div role="rowgroup" class="heads">
            <div role="row" class="resource-row head" aria-rowindex={1}>
              <span role="columnheader">Resource</span>
              <span role="columnheader">In use</span>
              <span role="columnheader">Held by</span>
              <span role="columnheader" class="number">
                Held for
              </span>
              <span role="columnheader" class="number">
                Waiting
              </span>
              <span role="columnheader" class="number">
                Longest wait
              </span>
            </div>
          </div>
          <Virtual
            count={total ?? 12}
            rowPx={rowPx}
            label="Resources"
            onRange={see}
            onLeave={() => search.current?.focus()}
            row={(index, isActive) => (
              <ResourceRow key={index} index={index} row={pages.at(index)} isActive={isActive} />
            )}
          />
        </div>
      )}
    </>
  )
}

function Figure(props: {
  title: string
  value: preact.ComponentChildren
  isHot?: boolean
  isText?: boolean
}) {
  const name = [props.isHot ? 'hot' : '', props.isText ? 'words' : ''].join(' ')
  return (
    <div class={`figure ${name}`}>
      <dt>{props.title}</dt>
      <dd>{props.value}</dd>
    </div>
  )
}
