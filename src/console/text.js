// All texts of the console and the formats of numbers and times, in one file so that they can be translated. Texts that
// come from the gateway are shown unchanged.

/** The language of texts and numbers, and the region for times (BCP 47). */
const [language, region] = ['en', 'en-GB']

/** @typedef {'tool' | 'prompt' | 'resource' | 'template'} Kind */

/** @param {number} value */
const amount = (value) => value.toLocaleString(language)
/** Rounds to two digits below 10, and to an integer from there on. @param {number} value */
const brief = (value) => (value < 10 ? String(Number(value.toPrecision(2))) : value.toFixed(0))
const relative = new Intl.RelativeTimeFormat(language, { numeric: 'auto' })

/** @param {number} count @param {string} one @param {string} many */
const counted = (count, one, many) => `${amount(count)} ${count === 1 ? one : many}`

/** @type {Record<Kind, [one: string, many: string]>} */
const kindNames = {
  tool: ['tool', 'tools'],
  prompt: ['prompt', 'prompts'],
  resource: ['resource', 'resources'],
  template: ['resource template', 'resource templates']
}
/** @param {number} count @param {Kind} kind */
const countedKind = (count, kind) => counted(count, ...kindNames[kind])

export const text = {
  language,
  /** index.html contains the same text, because this file is not loaded without JavaScript. */
  noScript: 'The console needs JavaScript. The admin API does the same for curl.',
  product: 'Gatehouse',
  console: 'Gatehouse console',
  skip: 'Skip to content',
  loading: 'Loading …',
  again: 'Try again',
  close: 'Close',
  managers: { file: 'configuration file', api: 'admin API' },
  none: '–',
  amount,
  time: {
    ago: (/** @type {number} */ count, /** @type {Intl.RelativeTimeFormatUnit} */ unit) => relative.format(count, unit),
    clock: (/** @type {Date} */ at) => at.toLocaleTimeString(region),
    /** `hour` and `day` are the labels of an axis. */
    hour: (/** @type {Date} */ at) => at.toLocaleTimeString(region, { timeStyle: 'short' }),
    day: (/** @type {Date} */ at) => at.toLocaleDateString(region, { day: 'numeric', month: 'short' }),
    dayAndClock: (/** @type {Date} */ at) => `${text.time.day(at)}, ${text.time.clock(at)}`,
    date: (/** @type {Date} */ at) => at.toLocaleString(region, { dateStyle: 'medium', timeStyle: 'medium' }),
    instant: '<1 ms',
    ms: (/** @type {number} */ ms) => `${Math.round(ms)} ms`,
    seconds: (/** @type {number} */ seconds) => `${seconds.toFixed(1)} s`,
    minutes: (/** @type {number} */ minutes) => `${Math.round(minutes)} min`
  },
  bytes: (/** @type {number} */ bytes) =>
    bytes < 1024
      ? `${bytes} B`
      : bytes < 1_048_576
        ? `${(bytes / 1024).toFixed(0)} KiB`
        : `${(bytes / 1_048_576).toFixed(1)} MiB`,
  yes: 'yes',
  no: 'no',
  navigation: 'Pages',
  theme: 'Dark colours',
  allTenants: 'All tenants',
  tenant: 'Tenant',
  chooseTenant: 'Choose a tenant',
  chooseTenantWhy: 'This page is about one tenant.',
  noTenants: 'There is no tenant that your key is for.',
  noPage: 'There is no such page.',
  noPageWhy: 'Choose one from the list of pages.',
  notForRole: (/** @type {string} */ role) => `Your role, ${role}, does not see this page.`,
  showMore: 'Show more',
  more: 'There are more than are shown here. Use the admin API to read all of them.',
  filter: 'Filter',
  shown: (/** @type {number} */ shown, /** @type {number} */ all) => `${shown} of ${all} shown`,
  hopsGoOn: 'Checking the next step …',
  failed: 'This could not be read.',
  /** Shown for an answer without a problem document. */
  answerWas: (/** @type {number} */ status) => `The answer was ${status}.`,
  noAnswer: {
    detail: 'The gateway does not answer.',
    remedy: 'Look whether it runs, and whether this machine reaches it.'
  },
  cutOff: {
    status: 0,
    title: '',
    detail: 'The connection ended before the whole answer came.',
    remedy: 'Try again.'
  },
  fault: 'The console has a fault on this page.',
  faultWhy: 'Reload the page. If it comes back, report it with what you did.',
  signIn: {
    title: 'Sign in',
    key: 'Admin key or access token',
    hint: 'A key from “gatehouse admin-key new”, or a token of your identity provider for the admin API. It is sent once and not kept in the browser.',
    submit: 'Sign in',
    at: (/** @type {string} */ host) => `Sign in at ${host}`,
    orKey: 'Or with a key:',
    ended: 'Your session has ended. Sign in again.',
    out: 'Sign out',
    as: (/** @type {string} */ name, /** @type {string} */ role) => `${name}, ${role}`
  },
  plan: {
    title: 'What this change does',
    asking: 'Asking the gateway what would change …',
    nothing: 'The configuration already says this. There is nothing to apply.',
    apply: 'Apply',
    done: (/** @type {number} */ version) => `Applied as version ${version}.`,
    changedMeanwhile: (/** @type {string} */ tenant) => ({
      detail: `The tenant ${tenant} has been changed meanwhile: this would undo it.`,
      remedy: 'Close this: the page then shows what is there now. Make your change again.'
    }),
    tenant: {
      made: (/** @type {string} */ tenant) => `The tenant ${tenant} is made.`,
      changed: (/** @type {string} */ tenant) => `The tenant ${tenant} changes.`,
      removed: (/** @type {string} */ tenant) => `The tenant ${tenant} is removed, with all its sessions.`
    },
    callers: 'Who may call changes: every caller is checked anew.',
    upstream: {
      made: (/** @type {string} */ name) => `${name} is connected.`,
      changed: (/** @type {string} */ name) => `${name} is connected anew, after the calls that run on it.`,
      removed: (/** @type {string} */ name) => `${name} is connected no more.`
    },
    endpoint: {
      made: (/** @type {string} */ name) => `The endpoint ${name} is made.`,
      changed: (/** @type {string} */ name) => `The endpoint ${name} changes.`,
      removed: (/** @type {string} */ name) => `The endpoint ${name} is removed.`
    },
    gains: (/** @type {string} */ name, /** @type {number} */ count, /** @type {Kind} */ kind) =>
      `Callers of ${name} gain ${countedKind(count, kind)}`,
    loses: (/** @type {string} */ name, /** @type {number} */ count, /** @type {Kind} */ kind) =>
      `Callers of ${name} lose ${countedKind(count, kind)}`,
    rules: (/** @type {string} */ name) => `Rules of ${name} change: these counts leave them out.`,
    caller: (/** @type {string} */ name, /** @type {string} */ endpoint) => `${name} at ${endpoint}`,
    gained: (/** @type {number} */ count, /** @type {Kind} */ kind) => `gains ${countedKind(count, kind)}:`,
    lost: (/** @type {number} */ count, /** @type {Kind} */ kind) => `loses ${countedKind(count, kind)}:`,
    others: (/** @type {number} */ count) =>
      `${counted(count, 'more caller gains or loses', 'more callers gain or lose')} something.`,
    notLookedAt: (/** @type {number} */ count) =>
      `${counted(count, 'caller was', 'callers were')} left out of this comparison, because the endpoints have too many tools and rules to compare all.`,
    nobodyDiffers: (/** @type {number} */ count) =>
      `None of ${counted(count, 'known caller', 'known callers')} gains or loses anything.`,
    unknown: (/** @type {string} */ names) => `Not counted, because it is not known now: what ${names} offers.`,
    mayChange: (/** @type {string} */ names) =>
      `The definition of ${names} changes, and what it offers may change with it. What it offers now is counted.`,
    brokenTest: (/** @type {string} */ name, /** @type {string} */ endpoint) =>
      `A test of ${name} at ${endpoint} would fail.`,
    told: (/** @type {number} */ count) =>
      `${counted(count, 'open session is', 'open sessions are')} notified at once.`,
    ended: (/** @type {number} */ count) => `${counted(count, 'open session ends', 'open sessions end')}.`,
    andMore: (/** @type {number} */ count) => `and ${count} more`,
    whichSessions: 'Which sessions',
    notNamed: (/** @type {number} */ count) => `${counted(count, 'more is', 'more are')} not named here.`
  },
  pages: {
    overview: 'Overview',
    live: 'Live',
    upstreams: 'Upstreams',
    tenants: 'Tenants and endpoints',
    people: 'People and connections',
    catalog: 'Catalog',
    policy: 'Policy',
    audit: 'Audit',
    connect: 'Connect'
  },
  plot: {
    now: 'now',
    keys: 'Arrow keys go through the moments; with Shift they choose a span. Enter zooms all plots into it, Escape shows all again.',
    moment: (/** @type {string} */ when, /** @type {string[]} */ values) => `${when}: ${values.join(', ')}`,
    chosen: (/** @type {string} */ from, /** @type {string} */ to) => `${from} to ${to} chosen. `,
    zoomed: (/** @type {string | undefined} */ from, /** @type {string | undefined} */ to) =>
      `Zoomed to ${from} to ${to}. `,
    nothing: (/** @type {string} */ name) => `${name}: no calls.`,
    sentence: (/** @type {string} */ name, /** @type {string} */ last, /** @type {string} */ most) =>
      `${name}: ${last} now, ${most} at most.`
  },
  overview: {
    problems: 'What is wrong now',
    allWell: 'Nothing is wrong that this process knows of.',
    leftOut: (/** @type {number} */ count) => `${count} more are not shown.`,
    severity: { fault: 'Fault', warning: 'Warning', notice: 'Notice' },
    since: (/** @type {string} */ when) => `It began ${when}.`,
    open: (/** @type {string} */ name) => `Open ${name}`,
    calls: 'Calls',
    by: 'By',
    kinds: { tenant: 'tenant', endpoint: 'endpoint', upstream: 'upstream', tool: 'tool' },
    span: 'Last',
    spanOf: (/** @type {number} */ minutes) =>
      minutes <= 60
        ? `${minutes} minutes`
        : minutes <= 24 * 60
          ? `${minutes / 60} hours`
          : `${minutes / (24 * 60)} days`,
    wholeSpan: 'Show all',
    all: 'all',
    perSecond: 'Calls per second',
    rate: (/** @type {number} */ value) => `${brief(value)}/s`,
    errorRate: 'Calls that failed',
    percent: (/** @type {number} */ value) => `${brief(value)} %`,
    latency: 'Duration: half, 95 % and 99 % of calls take at most',
    slowest: (/** @type {string} */ quantile) => `Duration, one by one: ${quantile}`,
    quantile: 'Quantile',
    noCalls: 'No calls in this time',
    noCallsWhy: 'They appear here as soon as somebody calls.',
    process: (/** @type {string} */ name) => `Counted by the process ${name}, in its memory.`,
    byPrometheus: 'Counted by Prometheus, for all processes.',
    zoom: 'Drag across a plot to zoom into all of them; double-click shows all again. By the keyboard: arrow keys with Shift, Enter, and Escape.',
    replicas: 'Processes',
    replica: 'Process',
    answers: 'answers',
    snapshot: 'Serves with',
    started: 'Started',
    differ: { version: 'version', configuration: 'configuration', snapshot: 'serves with' },
    differs: (/** @type {string[]} */ names, /** @type {string[]} */ parts) =>
      `${names.join(', ')} ${names.length === 1 ? 'differs' : 'differ'} from the process that answers: ${parts.join('; ')}.`,
    insteadOf: (/** @type {string} */ what, /** @type {string} */ its, /** @type {string} */ own) =>
      `${what} ${its} instead of ${own}`,
    mixed:
      'This is normal for a second after a change, and during an upgrade. If it stays, compare the configuration files of the processes.',
    use: 'How much is in use',
    useOf: (/** @type {string} */ tenant) => `How much ${tenant} has in use`,
    resources: {
      sessions: 'Sessions',
      streams: 'Streams',
      calls: 'Calls now',
      processes: 'stdio processes',
      processBytes: 'Memory of stdio processes',
      memoryBytes: 'Memory for calls'
    },
    limitOf: (/** @type {string} */ limit, /** @type {string} */ unit) => `Limit ${limit}: calls per ${unit}`,
    atLimit: (/** @type {number} */ count) => `nothing left for ${amount(count)}`,
    noLimit: (/** @type {string} */ used) => `${used}, no limit`,
    memory: 'Memory for calls',
    processes: 'stdio processes',
    of: (/** @type {string} */ used, /** @type {string} */ most) => `${used} of ${most}`,
    connections: 'Connections of clients',
    sessions: 'Sessions',
    streams: 'Streams',
    version: 'Version',
    configuration: 'Configuration',
    changes: (/** @type {number} */ version) => `version ${version}`,
    tenants: 'Tenants',
    noTenants: 'No tenant yet',
    noTenantsWhy: 'Make the first one under “Tenants and endpoints”.',
    endpoints: 'Endpoints',
    upstreams: 'Upstreams',
    managedBy: 'Managed by',
    file: 'configuration file'
  },
  live: {
    filter: 'Filter calls by anything',
    failedOnly: 'Failed only',
    pause: 'Pause',
    paused: (/** @type {number} */ count) => `Paused, ${amount(count)} new`,
    states: { open: 'Listening', waiting: 'Connecting …', ended: 'Ended' },
    dropped: (/** @type {number} */ count) => `${count} calls came too fast to be shown.`,
    none: 'No call yet',
    noneWhy:
      'Calls that run for a while are shown above, and all as they end. What ended before this page was opened is not kept here; the log and the audit log have it.',
    noneFound: 'No call matches the filter',
    caption: 'Calls, the newest first',
    running: (/** @type {number} */ count) =>
      count === 0 ? 'No call runs' : `${counted(count, 'call runs', 'calls run')} now`,
    runningCaption: 'Calls that run, the longest first',
    begun: 'Begun',
    soFar: 'So far',
    waitsFor: 'Waits for',
    waits: { gateway: 'the gateway', upstream: 'the upstream', client: 'the client or its user' },
    moreRun: (/** @type {number} */ count) => `${counted(count, 'more runs', 'more run')}.`,
    soFarTimeline: (/** @type {string} */ ms, /** @type {string} */ what) =>
      `It has run for ${ms}, and waits for ${what}`,
    time: 'Time',
    called: 'What',
    outcome: 'Outcome',
    took: 'Took',
    caller: 'Caller',
    one: (/** @type {string} */ name) => `Call of ${name}`,
    timeline: (/** @type {string} */ took) => `Where its ${took} went`,
    hops: {
      gateway: 'Gateway',
      before: 'Gateway, before',
      upstream: 'Upstream and user',
      after: 'Gateway, after',
      round: (/** @type {number} */ number) => `Upstream, round ${number}`,
      asked: (/** @type {string} */ method, /** @type {string | undefined} */ answer) =>
        `Asked the client: ${method}${answer === undefined ? '' : `; ${text.live.answers[answer] ?? answer}`}`,
      again: (/** @type {string} */ why) => `Sent again: ${text.live.reasons[why] ?? why}`,
      notified: (/** @type {string} */ method, /** @type {number} */ count) =>
        `${method}${count > 1 ? `, ${count} times` : ''}`
    },
    answers: /** @type {Record<string, string>} */ ({
      accept: 'accepted',
      decline: 'declined',
      cancel: 'dismissed',
      answered: 'answered',
      failed: 'not answered'
    }),
    reasons: /** @type {Record<string, string>} */ ({
      session: 'the server had forgotten the session',
      credential: 'the server refused the credential',
      revision: 'the server refused the revision',
      headers: 'the server refused the headers',
      stream: 'the rest of the answer, after the connection broke'
    }),
    members: {
      requestId: 'Request',
      traceId: 'Trace',
      tenant: 'Tenant',
      endpoint: 'Endpoint',
      user: 'Person',
      apiKey: 'API key',
      client: 'Client',
      software: 'Software',
      revision: 'Revision of MCP',
      session: 'Session',
      method: 'Method',
      upstream: 'Upstream',
      tool: 'Tool',
      prompt: 'Prompt',
      resource: 'Resource',
      outcome: 'Outcome',
      code: 'Code',
      rule: 'Refused by rule',
      allowedBy: 'Let through by rule',
      error: 'Error',
      bytesIn: 'Bytes in',
      bytesOut: 'Bytes out',
      notifications: 'Notifications',
      serverRequests: 'Server requests',
      resultType: 'Result',
      attempts: 'Times that it was sent',
      again: 'Sent again because',
      resumed: 'Answer taken up again',
      rounds: 'Rounds of input',
      retry: 'Sent once more, with',
      address: 'From'
    }
  },
  upstreams: {
    ofFile: 'This tenant is managed by the configuration file: change it there.',
    add: 'Add upstreams',
    none: 'No upstream yet',
    noneWhy: 'Upstreams are the MCP servers behind the endpoints of a tenant.',
    noSuch: (/** @type {string} */ name) => `There is no upstream ${name}.`,
    name: 'Upstream',
    state: 'State',
    states: { connected: 'connected', idle: 'idle', away: 'away', disabled: 'disabled' },
    transport: 'Transport',
    transports: { stdio: 'stdio process', 'streamable-http': 'Streamable HTTP', sse: 'HTTP+SSE' },
    transportUnknown: 'HTTP',
    transportWhen: 'Streamable HTTP or HTTP+SSE: the gateway knows which while a connection is open.',
    strayLines: 'Stray output',
    strayLinesOf: (/** @type {number} */ lines) =>
      `${counted(lines, 'line that is no message', 'lines that are no messages')} on its standard output. An answer among them is lost: have it write its log to standard error.`,
    target: 'Where',
    tools: 'Tools',
    connections: 'Connections',
    running: 'Calls now',
    reconnect: { later: 'Reconnect', atOnce: 'Reconnect at once' },
    restart: { later: 'Restart', atOnce: 'Restart at once' },
    laterWhy: 'Every process opens new connections, and closes the present ones after the calls that run on them.',
    atOnceWhy: (/** @type {number} */ calls) =>
      `${counted(calls, 'call that runs', 'calls that run')} on it at this process, and those at others, end now. Whether they took effect is unknown.`,
    done: (/** @type {string} */ name) => `${name} is connected anew.`,
    stillAway: (/** @type {string} */ name) => `${name} was tried anew, and cannot be reached.`,
    away: (/** @type {string} */ since, /** @type {string} */ next) =>
      `It cannot be reached${since && `; that began ${since}`}.${next && ` It is tried again ${next}.`}`,
    revisions: 'Revisions of MCP',
    isolation: 'Connections are for',
    isolations: { shared: 'everybody together', principal: 'each caller', session: 'each session' },
    processes: 'Processes',
    processesOf: (/** @type {number} */ count, /** @type {string} */ memory) =>
      count === 0 ? 'None runs now.' : `${counted(count, 'process', 'processes')}, ${memory} of memory`,
    listing: 'Offers',
    listingUnknown: 'Not known now.',
    listed: (/** @type {Record<string, number>} */ { tools = 0, prompts = 0, resources = 0, templates = 0 }) =>
      [
        counted(tools, 'tool', 'tools'),
        counted(prompts, 'prompt', 'prompts'),
        counted(resources, 'resource', 'resources'),
        counted(templates, 'template', 'templates')
      ].join(', '),
    secrets: 'Secrets',
    lastError: 'Last error'
  },
  stderr: {
    title: 'Standard error, the last lines',
    none: 'Its processes have written nothing to standard error at the process that answers.',
    leftOut: (/** @type {number} */ lines) => `${counted(lines, 'line', 'lines')} left out: too many at once`
  },
  addUpstream: {
    title: 'Add upstreams',
    way: 'From',
    ways: { url: 'a URL', json: 'the text of an mcp.json', registry: 'an entry of a registry' },
    name: 'Name',
    nameHint: 'Stands before the names of its tools: small letters, digits, - and _.',
    url: 'URL',
    urlHint: 'Of an MCP server over Streamable HTTP or HTTP+SSE; the gateway finds out which.',
    look: 'Check it',
    lookHow: 'The gateway tries to connect to it, step by step, and adds nothing.',
    lookStopped: 'What to do',
    forPeople: 'Each person connects an account of their own there',
    toolsFound: (/** @type {number} */ tools) => counted(tools, 'tool', 'tools'),
    json: 'mcp.json',
    jsonHint:
      'The whole file, or the object of its servers, as your host has it. Only programs in admin.allowedCommands may be started.',
    registry: 'Entry of a registry',
    registryHint:
      'The server.json of the server, or what a registry of MCP answers for it. It is not fetched: paste it here. Only programs in admin.allowedCommands may be started.',
    noOffer:
      'The entry has no URL, and no package of npm, PyPI or OCI that runs over stdio. Add the server by its URL.',
    offerOf: 'Use',
    noServers:
      'The text has no servers, or one without a command or a url. Paste the object of servers of an mcp.json.',
    taken: (/** @type {string} */ name) => `There is an upstream ${name} already. Give it another name.`,
    offer: 'Offer them at the endpoint default',
    plan: 'See what it changes'
  },
  tenants: {
    title: 'All tenants',
    make: 'Make a tenant',
    none: 'No tenant yet',
    noneWhy: 'A tenant has its own callers, upstreams and endpoints; nothing crosses tenants.',
    name: 'Name',
    nameHint: 'Part of the URLs of its endpoints: small letters, digits, - and _.',
    endpoints: 'Endpoints',
    upstreams: 'Upstreams',
    keys: 'API keys',
    managedBy: 'Managed by',
    version: 'Version',
    plan: 'See what it changes',
    ofFile: 'This tenant is managed by the configuration file: change it there.',
    endpointsOf: (/** @type {string} */ tenant) => `Endpoints of ${tenant}`,
    makeEndpoint: 'Make an endpoint',
    endpoint: 'Endpoint',
    endpointHint: 'Part of its URL: small letters, digits, - and _.',
    path: 'Path',
    changedTools: 'Changed tools'
  },
  endpoint: {
    title: (/** @type {string} */ name) => `Endpoint ${name}`,
    plan: 'See what it changes',
    remove: 'Remove',
    members: 'Upstreams behind it',
    membersWhy: 'If two upstreams have something of the same name, the first one keeps the name.',
    up: (/** @type {string} */ name) => `Move ${name} up`,
    down: (/** @type {string} */ name) => `Move ${name} down`,
    prefix: 'Prefix',
    prefixOf: (/** @type {string} */ name) => `Prefix of ${name}`,
    prefixes: { usual: 'usual', none: 'none', own: 'its own' },
    ownPrefixOf: (/** @type {string} */ name) => `Own prefix of ${name}`,
    tools: 'Tools that it offers',
    toolsWhy:
      'What it offers before rules decide who may use what (see “Policy”). Untick what is not to be offered; a name replaces the usual one.',
    unknown: (/** @type {string} */ names) => `Not known now: the tools of ${names}.`,
    filter: 'Filter tools',
    rename: (/** @type {string} */ id) => `Name of ${id}`,
    notOffered: 'not offered',
    noTools: 'Tick an upstream to see its tools.'
  },
  history: {
    title: 'History',
    none: 'No change yet',
    noneWhy: 'Changes by the admin API are kept, and can be taken back.',
    end: 'The last twenty changes of each tenant and the last twenty of its kill switches are kept. The audit log has earlier ones.',
    version: 'Version',
    when: 'When',
    who: 'Who',
    what: 'What',
    compare: 'Compare',
    compareTitle: (/** @type {string} */ tenant) => `Two versions of ${tenant}`,
    from: 'From version',
    to: 'To version',
    versionOf: (/** @type {number} */ version) => `Version ${version}`,
    back: 'Restore',
    backTo: (/** @type {number} */ version) => `Restore version ${version}`,
    backWhy: (/** @type {string} */ tenant, /** @type {string} */ when) =>
      `${tenant} gets its configuration of ${when}, as a new version. API keys that were revoked since stay revoked, and kill switches stay on.`,
    done: (/** @type {number} */ version) => `Version ${version} is in force again.`
  },
  people: {
    sessions: 'Sessions',
    noSessions: 'No open session',
    noSessionsWhy: 'Clients of 2026-07-28 have none: each of their requests stands alone.',
    person: 'Person or key',
    endpoint: 'Endpoint',
    software: 'Client',
    revision: 'Revision',
    opened: 'Opened',
    used: 'Last used',
    end: 'End',
    endTitle: (/** @type {string} */ person) => `End a session of ${person}`,
    endWhy: (/** @type {string} */ endpoint) =>
      `Its calls at ${endpoint} end at every process. The client is told, and may open another session.`,
    ended: 'The session has ended.',
    seen: 'Who called today',
    noneSeen: 'Nobody has called today',
    noneSeenWhy: 'At this process; the log and the audit log have earlier days and other processes.',
    kindsOfCaller: { token: 'token', key: 'API key', anonymous: 'anybody' },
    letInBy: 'Let in by',
    groups: 'Groups',
    calls: 'Calls',
    last: 'Last seen',
    connections: 'Connected accounts and secrets',
    noConnections: 'Nobody has connected anything',
    noConnectionsWhy:
      'People connect their own accounts where an upstream asks for them. What they give is never shown.',
    upstream: 'Upstream',
    kind: 'Kind',
    kinds: { account: 'account', secret: 'secret' },
    state: 'State',
    states: {
      connected: 'connected',
      'has to be connected again': 'has to be connected again',
      'not in use': 'not in use'
    },
    since: 'Since',
    revoke: 'Revoke',
    revokeTitle: (/** @type {string} */ person, /** @type {string} */ upstream) =>
      `Revoke what ${person} gave for ${upstream}`,
    revokeWhy:
      'Calls of this person to it are refused until they connect again. An account is given back to its provider.',
    revoked: 'The connection is revoked.'
  },
  kills: {
    title: 'Kill switches',
    none: 'Nothing is stopped',
    noneWhy: 'A kill switch stops a tool, an upstream, a caller, a key or the tenant at every process within a second.',
    kind: 'What',
    kinds: { tool: 'tool', upstream: 'upstream', principal: 'person', key: 'API key', tenant: 'the whole tenant' },
    what: 'Which',
    others: 'Other names',
    reach: (/** @type {{ also: string[], besides: string[] }} */ { also, besides }) => [
      ...(also.length > 0 ? [`Stopped with it: ${also.join(', ')}.`] : []),
      ...(besides.length > 0 ? [`At the same server, and not stopped: ${besides.join(', ')}.`] : [])
    ],
    since: 'Since',
    by: 'By',
    form: 'Stop something',
    parts: { upstream: 'Upstream', tool: 'Tool', issuer: 'Issuer', subject: 'Subject', key: 'Name of the key' },
    hints: {
      upstream: undefined,
      tool: 'The name that its upstream gives it.',
      issuer: 'The iss of their tokens; urn:gatehouse:key for API keys.',
      subject: 'The sub of their tokens.',
      key: undefined
    },
    unseen: 'Also if nobody has seen it yet',
    ask: 'See what it hits',
    stop: 'Stop it now',
    stopTitle: (/** @type {string} */ kind, /** @type {string} */ name) => `Stop ${kind}: ${name}`,
    stopped: (/** @type {string} */ name) => `${name} is stopped.`,
    resume: 'Take back',
    resumeTitle: (/** @type {string} */ name) => `Let ${name} go on`,
    resumeWhy: 'It is in use again at every process within a second.',
    resumed: (/** @type {string} */ name) => `${name} is in use again.`,
    effects: {
      tool: 'Callers get the answer for a tool that does not exist.',
      upstream: 'Nothing of it is offered; its connections and processes end.',
      principal: 'The caller gets HTTP 403; its sessions and streams end.',
      key: 'The key is refused; sessions and streams of its holder end.',
      tenant: 'Every caller gets HTTP 403; sessions, streams and processes end.'
    },
    sessions: (/** @type {number} */ count, /** @type {boolean} */ isAll) =>
      isAll
        ? `${counted(count, 'open session ends', 'open sessions end')}.`
        : `${counted(count, 'open session', 'open sessions')} of those listed here, and perhaps others, end.`,
    calls: (/** @type {number} */ count, /** @type {number} */ others) =>
      others === 0
        ? `${counted(count, 'call', 'calls')} of the last hour at this process would have been refused.`
        : `At least ${counted(count, 'call', 'calls')} of the last hour at this process would have been refused; of ${amount(others)} more, which are counted together, it is not known.`,
    callsSince: (/** @type {number} */ count, /** @type {string} */ since) =>
      `${counted(count, 'call', 'calls')} since ${since} at this process would have been refused.`,
    notSeen: 'This process remembers no call of it today; other processes were not asked.',
    everywhere: 'At every process within a second, calls in flight included, until it is taken back.'
  },
  choice: {
    endpoint: 'Endpoint',
    noEndpoints: 'This tenant has no endpoint',
    noEndpointsWhy: 'It has one as soon as it has an upstream.',
    caller: 'Caller',
    anybody: 'anybody who is let in',
    key: 'an API key',
    token: 'by a token',
    keyName: 'Key',
    subject: 'Subject',
    issuer: 'Issuer',
    firstIssuer: 'the first one',
    client: 'Client',
    groups: 'Groups',
    roles: 'Roles',
    scopes: 'Scopes',
    revision: 'Revision of MCP'
  },
  schema: {
    any: 'anything',
    none: 'None.',
    required: 'required',
    bounds: {
      minimum: 'at least',
      maximum: 'at most',
      minLength: 'characters at least',
      maxLength: 'characters at most',
      minItems: 'items at least',
      maxItems: 'items at most',
      pattern: 'matches',
      format: 'format',
      default: 'default'
    }
  },
  copy: {
    copy: 'Copy',
    copied: 'Copied',
    refused: 'The browser does not let this page copy.',
    refusedWhy: 'Select the text and copy it yourself.'
  },
  difference: {
    caption: 'Where they differ',
    place: 'Where',
    same: 'They are alike.',
    nothing: 'nothing'
  },
  catalog: {
    kind: 'Show',
    kinds: { tool: 'tools', prompt: 'prompts', resource: 'resources', template: 'resource templates' },
    compare: 'Compare two',
    seenBy: 'As seen by',
    first: 'First',
    second: 'Second',
    firstWhen: 'The first, as it is',
    secondWhen: 'The second, as it is',
    sum: (/** @type {number} */ count, /** @type {Kind} */ kind, /** @type {number} */ tokens) =>
      `${counted(count, text.policy.kinds[kind], text.catalog.kinds[kind])}, about ${counted(tokens, 'token', 'tokens')}.`,
    unknown: (/** @type {string} */ names) => `Missing here, because it is not known now: what ${names} offers.`,
    nothing: (/** @type {Kind} */ kind) => `No ${text.policy.kinds[kind]} is offered to this caller`,
    nothingWhy: 'Under “Policy” you can ask why.',
    caption: (/** @type {Kind} */ kind) => `What is offered: ${text.catalog.kinds[kind]}`,
    name: 'Name',
    upstream: 'Upstream',
    what: 'Description',
    tokens: 'Tokens',
    title: 'Title',
    annotations: 'Hints',
    arguments: 'Arguments',
    output: 'Structured output',
    definition: 'The whole definition',
    why: 'Why it is offered',
    tryIt: 'Try it',
    same: (/** @type {number} */ count, /** @type {number} */ from, /** @type {number} */ to) =>
      `${counted(count, 'is', 'are')} alike. Tokens: about ${amount(from)} for the first, ${amount(to)} for the second.`,
    onlyFirst: (/** @type {number} */ count) => `Only the first sees ${count}`,
    onlySecond: (/** @type {number} */ count) => `Only the second sees ${count}`,
    changed: (/** @type {number} */ count) => `${count} differ`
  },
  moments: {
    now: 'now',
    configuration: (/** @type {string} */ at, /** @type {number} */ version, /** @type {string} */ actor) =>
      `before ${at}: version ${version}, by ${actor}`,
    listing: (
      /** @type {string} */ at,
      /** @type {string} */ upstream,
      /** @type {{ came: number, gone: number, altered: number }} */ { came, gone, altered }
    ) => `before ${at}: ${upstream} listed ${came} more, ${gone} less, ${altered} differently`,
    since: (/** @type {string} */ at) => `What upstreams list is known since ${at}.`
  },
  audit: {
    verification: 'Are the records whole?',
    verificationHow:
      'Each record names the one before it, and some are signed: what was altered, removed or inserted afterwards is found.',
    verify: 'Verify',
    verifying: 'Verifying …',
    whole: 'Nothing is missing or altered.',
    broken: (/** @type {number} */ count) => `The records are not whole: ${counted(count, 'problem', 'problems')}.`,
    counts: (/** @type {number} */ records, /** @type {number} */ chains, /** @type {number} */ signatures) =>
      `${counted(records, 'record', 'records')} in ${counted(chains, 'run', 'runs')}, ${counted(signatures, 'signature', 'signatures')}.`,
    all: 'That is all that the store keeps.',
    part: 'Older ones were not read.',
    foreign:
      'Signed by keys that this gateway does not sign with now. Compare them with those that it logged at its earlier starts.',
    notes: (/** @type {number} */ count) => counted(count, 'note', 'notes'),
    records: 'Records',
    kind: 'Kind',
    anyKind: 'all kinds',
    kinds: {
      call: 'call',
      refused: 'refused request',
      session: 'session',
      login: 'login',
      change: 'change',
      lost: 'lost records',
      begin: 'beginning of a run',
      checkpoint: 'signature',
      end: 'end of a run'
    },
    since: 'Since',
    until: 'Until',
    older: 'Look for older ones',
    none: 'No record',
    noneWhy: 'Nothing that is kept is of this kind and time.',
    noneYet: 'None among the newest records',
    caption: 'Audit records, the newest first',
    time: 'Time',
    who: 'Who',
    what: 'What',
    outcome: 'Outcome',
    from: 'From',
    export: 'Download all of this kind and time',
    exporting: 'The records are read …',
    stopExport: 'Stop the download',
    one: (/** @type {string} */ kind) => `Record: ${kind}`,
    json: 'As JSON',
    members: {
      chain: 'Run',
      seq: 'Number in it',
      prev: 'Hash of the one before',
      time: 'Time',
      kind: 'Kind',
      by: 'Who',
      from: 'From',
      request: 'Request',
      http: 'Method of HTTP',
      action: 'Action',
      before: 'Digest of what was there before',
      after: 'Digest of what is there now',
      client: 'Client',
      redirectUri: 'Redirect URI',
      resource: 'Resource',
      scopes: 'Scopes',
      endpoint: 'Endpoint',
      method: 'Method',
      name: 'Asked for',
      upstream: 'Upstream',
      original: 'Name at the upstream',
      decision: 'Decision',
      rule: 'Rule',
      allowedBy: 'Allowed by',
      outcome: 'Outcome',
      code: 'Code',
      target: 'Target',
      ms: 'Milliseconds',
      bytes: 'Bytes in',
      bytesOut: 'Bytes out',
      arguments: 'Arguments',
      argumentsHash: 'Hash of the arguments',
      unrecorded: 'Records left out before this one',
      since: 'Previous signature at',
      heads: 'Ends of the other runs',
      deleted: 'Runs whose oldest records are gone',
      publicKey: 'Public key',
      signature: 'Signature'
    }
  },
  policy: {
    notForRole: (/** @type {string} */ role) =>
      `Your role, ${role}, does not read rules. You can ask what they decide.`,
    none: 'No rules',
    noneWhy: 'Neither the tenant nor the endpoint has a policy: whoever is let in may use everything that is offered.',
    sum: (/** @type {number} */ tools) =>
      `The endpoint has ${counted(tools, 'tool', 'tools')} before rules. If two rules disagree, deny wins.`,
    unknown: (/** @type {string} */ names) => `Not counted, because they are not known now: the tools of ${names}.`,
    of: {
      tenant: (/** @type {string} */ name) => `Rules of the tenant ${name}`,
      endpoint: (/** @type {string} */ name) => `Rules of the endpoint ${name}`
    },
    levels: { tenant: 'tenant', endpoint: 'endpoint' },
    byDefault: (/** @type {'allow' | 'deny' | null} */ effect) =>
      effect === null
        ? 'It has none, so it denies nothing.'
        : `What no rule decides is ${effect === 'allow' ? 'allowed' : 'denied'}.`,
    caption: { tenant: 'Rules of the tenant, in their order', endpoint: 'Rules of the endpoint, in their order' },
    place: 'No.',
    rule: 'Rule',
    effect: 'Effect',
    effects: { allow: 'allows', deny: 'denies', requires: 'requires scopes' },
    who: 'Whom',
    everybody: 'everybody',
    whoParts: {
      issuers: 'issuer',
      subjects: 'subject',
      clients: 'client',
      keys: 'key',
      scopes: 'scope',
      groups: 'group',
      roles: 'role'
    },
    callerParts: {
      issuer: 'issuer',
      subject: 'subject',
      client: 'client',
      key: 'key',
      scopes: 'scope',
      groups: 'group',
      roles: 'role'
    },
    what: 'What',
    everything: 'everything',
    whatParts: { upstreams: 'upstream', names: 'name', kinds: 'kind', tags: 'tag' },
    when: 'When',
    always: 'always',
    tools: 'Tools now',
    callers: 'Callers today',
    scopes: 'Scopes',
    stands: 'Stands',
    placeOf: (/** @type {number} */ place, /** @type {'tenant' | 'endpoint'} */ of) =>
      `as number ${place} in the policy of the ${text.policy.levels[of]}`,
    one: (/** @type {string} */ name) => `Rule ${name}`,
    covers: (/** @type {number} */ count) => `It covers ${counted(count, 'tool', 'tools')} of this endpoint now`,
    isAbout: (/** @type {number} */ count) =>
      `It applies to ${counted(count, 'caller', 'callers')} of today at this process`,
    andMore: (/** @type {number} */ count) => `and ${count} more`,
    whole: 'The whole rule',
    explain: 'Why a caller may use something, or not',
    explainHow: 'The same rules decide here as for lists and calls. Nothing is called.',
    whoCalls: 'Who calls',
    kind: 'It is a',
    kinds: { tool: 'tool', prompt: 'prompt', resource: 'resource', template: 'resource template' },
    name: 'What',
    nameHint: 'UPSTREAM/NAME, with the name or URI that the upstream itself gives it.',
    more: 'Arguments and time, for rules with conditions',
    arguments: 'Arguments of the call, as a JSON object',
    argumentsHint: 'Without them the answer may be that it depends.',
    at: 'Time of the call',
    atHint: 'In your time zone. Left empty: now.',
    ask: 'Explain',
    tests: 'Tests',
    noTests: 'No test yet',
    noTestsWhy: 'Ask something below, and keep the answer as a test: a plan then says whether a change would break it.',
    again: 'Run them again',
    testsFailed: (/** @type {number} */ failed, /** @type {number} */ all) =>
      failed === 0 ? `${counted(all, 'test holds', 'tests hold')}.` : `${failed} of ${all} do not hold.`,
    expected: 'Expected',
    decided: 'Decided',
    anybody: 'anybody',
    outcomes: {
      allowed: 'allowed',
      denied: 'denied',
      refused: 'refused',
      'needs-scopes': 'needs scopes',
      depends: 'depends on arguments',
      'not-offered': 'not offered'
    },
    cannotBeAsked: 'cannot be asked',
    keep: 'Keep as a test',
    judged: 'Every rule, and whether it applies',
    ofWhom: 'Of the',
    applies: 'Applies',
    dependsOnArguments: 'depends',
    because: 'Because'
  },
  try: {
    heading: (/** @type {string} */ name) => `Try ${name}`,
    how: 'The call goes through the endpoint, under the rules and limits of whoever the credential belongs to, and is recorded as any other. The audit log has that you tried it.',
    credential: 'Your API key or token for this endpoint',
    credentialHint:
      'Not your admin key: that opens no endpoint. It is sent with the call. This tab keeps it for this endpoint until you sign out or load the console anew.',
    arguments: 'Arguments, as a JSON object',
    asText: 'Write the arguments as JSON',
    run: 'Call it',
    running: 'Running …',
    cancel: 'Cancel the call',
    states: {
      cut: 'The connection ended before the answer came. Whether the call took effect is unknown.',
      cancelled: 'Cancelled. Whether the call took effect is unknown.'
    },
    asks: 'The server asks',
    opens: 'It wants you to visit',
    accept: 'Accept',
    decline: 'Decline',
    dismiss: 'Dismiss',
    cannotAnswer: (/** @type {string} */ method) => `The server sends ${method}, which this page cannot answer.`,
    outcome: 'Outcome',
    succeeded: 'succeeded',
    failed: 'the tool says that it has failed',
    refused: 'refused',
    facts: (/** @type {string} */ took, /** @type {number} */ status, /** @type {string | null} */ id) =>
      `${took}, HTTP ${status}${id ? `, request ${id}` : ''}`,
    structured: 'Structured content',
    whole: 'The whole answer',
    image: (/** @type {string} */ type) => `An image that the tool returned (${type})`,
    link: 'resource',
    notShown: (/** @type {string} */ type, /** @type {string | undefined} */ mime) =>
      `Not shown here: ${type}${mime ? ` (${mime})` : ''}.`
  },
  connect: {
    url: 'URL of the endpoint',
    urlHint: 'Most hosts need nothing else.',
    keyHint:
      'Put an API key of the tenant in place of YOUR_API_KEY. The gateway keeps digests only and cannot show one.',
    with: 'Hosts use',
    login: 'their own login',
    key: 'an API key',
    platform: 'System',
    platforms: { linux: 'Linux', darwin: 'macOS', win32: 'Windows' },
    code: (/** @type {string} */ url) => `QR code of ${url}`,
    into: 'Into',
    run: 'Run',
    orRun: 'Or run',
    snippetOf: (/** @type {string} */ host) => `Snippet for ${host}`,
    commandOf: (/** @type {string} */ host) => `Command for ${host}`,
    open: (/** @type {string} */ host) => `Open in ${host}`,
    showCode: 'QR code of the link',
    linkCode: (/** @type {string} */ host) => `QR code of the link that opens ${host}`,
    doctor: 'Check whether a host can connect',
    doctorHow:
      'The gateway goes the way of a host to this URL, hop by hop, and says at the first one that fails who has to act. What lies between your own machine and the gateway is seen by “gatehouse doctor” there.',
    credential: 'API key or token',
    credentialHint: 'Without one nobody signs in, and the session is not tried.',
    examine: 'Examine',
    side: (/** @type {string} */ side) => `What to do, at the side of the ${side}`,
    allWell: 'All hops that were tried are well.'
  }
}
