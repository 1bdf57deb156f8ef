// What happened during a call, and what people have connected, in a real browser.

import t from 'tap'
import { answeringClient } from '../kit/answering-client.ts'
import { key as apiKey } from '../kit/gateway.ts'
import { endedCalls, giveSecret, violationsInBothThemes } from './rig.ts'
import { rig } from './shared-rig.ts'

t.test('a call shows what the server asked its client, how that answered, and progress', async (t) => {
  const { page, complaints } = await rig.signedIn('live?tenant=acme')
  await page.getByText('Listening').waitFor()
  const client = await answeringClient(rig.url(), apiKey, 'Streamable HTTP', '2025-11-25', { elicitation: {} })
  t.teardown(() => client.close())
  const answers = [
    [{ action: 'accept', content: { name: 'canary-of-ada' } }, 'accepted'],
    [{ action: 'decline' }, 'declined']
  ] as const
  for (const [answer, said] of answers) {
    const call = await client.start('tools/call', { name: 'tickets__elicit', arguments: {} })
    const [asked] = await call.serverRequests()
    await client.answer(asked ?? {}, answer)
    await call.final()
    // As it ended: for a moment it may still be among those that run.
    const row = endedCalls(page).getByRole('row').filter({ hasText: 'tickets/elicit' })
    await row.getByRole('button').click()
    const dialog = page.getByRole('dialog', { name: 'Call of elicit' })
    const hop = dialog.getByRole('listitem').filter({ hasText: `Asked the client: elicitation/create; ${said}` })
    t.match(await hop.innerText(), /\d m?s$/, 'and how long that took')
    t.match(await dialog.innerText(), /Server requests\s+1/)
    t.same(await violationsInBothThemes(page), [])
    t.notMatch(await page.content(), 'canary', 'what was answered is shown to nobody')
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    await page.reload()
    await page.getByText('Listening').waitFor()
  }
  await client.request('tools/call', { name: 'tickets__progress', arguments: {}, _meta: { progressToken: 'p' } })
  const row = endedCalls(page).getByRole('row').filter({ hasText: 'tickets/progress' })
  await row.getByRole('button').click()
  await page.getByText('notifications/progress, 3 times').waitFor()
  t.same(complaints, [])
})

t.test('calls that run are there before they end, with what they wait for', async (t) => {
  const { page, complaints } = await rig.signedIn('live?tenant=acme')
  await page.getByRole('heading', { name: 'No call runs' }).waitFor()
  const client = await answeringClient(rig.url(), apiKey, 'Streamable HTTP', '2025-11-25', { elicitation: {} })
  t.teardown(() => client.close())
  const asking = await client.start('tools/call', { name: 'tickets__elicit', arguments: {} })
  const [asked] = await asking.serverRequests()
  const slow = rig.ada.request('tools/call', { name: 'tickets__slow', arguments: {} })
  const running = page.getByRole('table', { name: 'Calls that run' })
  const row = (text: string) => running.getByRole('row').filter({ hasText: text })
  await row('tickets/slow').filter({ hasText: 'the upstream' }).waitFor()
  await row('tickets/elicit').filter({ hasText: 'the client or its user' }).waitFor()
  await page.getByRole('heading', { name: '2 calls run now' }).waitFor()
  await page.getByRole('searchbox').fill('slow')
  await row('tickets/elicit').waitFor({ state: 'detached' })
  await page.getByRole('searchbox').fill('')
  await row('tickets/elicit').getByRole('button').focus()
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog', { name: 'Call of elicit' })
  await dialog.getByText(/^It has run for .*, and waits for the client or its user$/).waitFor()
  await dialog.getByText('Asked the client: elicitation/create').waitFor()
  t.same(await violationsInBothThemes(page), [])
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  await client.answer(asked ?? {}, { action: 'decline' })
  await asking.final()
  await endedCalls(page).getByRole('rowheader', { name: 'tickets/elicit' }).waitFor()
  await row('tickets/elicit').waitFor({ state: 'detached' })
  t.equal(await row('tickets/slow').count(), 1, 'the other one goes on')
  rig.tickets.server.release()
  await slow
  await page.getByRole('heading', { name: 'No call runs' }).waitFor()
  t.same(complaints, [])
})

t.test('what somebody has connected is revoked, and their calls are refused until they connect again', async (t) => {
  await giveSecret(rig, apiKey, 'the-secret-of-ada')
  const call = async () => (await rig.ada.request('tools/call', { name: 'search__echo', arguments: {} })).json.result
  t.match(await call(), { structuredContent: { arguments: {} } })
  const { page, complaints } = await rig.signedIn('people?tenant=acme')
  const row = page.getByRole('table', { name: 'Connected accounts' }).getByRole('row').filter({ hasText: 'search' })
  t.match(await row.innerText(), /^test\s+search\s+secret\s+connected/)
  t.notMatch(await page.content(), 'the-secret-of-ada')
  t.same(await violationsInBothThemes(page), [])
  await row.getByRole('button', { name: 'Revoke: test, search' }).click()
  const dialog = page.getByRole('dialog', { name: 'Revoke what test gave for search' })
  t.same(await violationsInBothThemes(page), [])
  await dialog.getByRole('button', { name: 'Revoke' }).click()
  await page.getByText('The connection is revoked.').waitFor()
  await page.getByText('Nobody has connected anything').waitFor()
  t.match(await call(), { isError: true, content: [{ text: /connect/ }] })
  t.same(complaints, [])
})
