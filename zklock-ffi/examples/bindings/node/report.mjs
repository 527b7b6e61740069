// Promises share a lock: node report.mjs HOSTS PATH SECONDS WORKERS [OPTION=VALUE ...]
import { setTimeout as sleep } from 'node:timers/promises'
import koffi from 'koffi'

koffi.alias('H', 'void *') // a handle
const library = koffi.load('libzklock.so.0.1')
const zk = {} // zklock.h without its prefix. A function without a type gives a status, which is checked.
for (const [, type, name, parameters] of `uint32 abi(), options_new(_Out_ H *), options_set(H, str, str),
  client_new_lazy(str, H, _Out_ H *), mutex_new(H, str, H, _Out_ H *), acquire_start(H, int64, _Out_ H *),
  str last_error(), hold_wait_lost_start(H, _Out_ H *), release_start(H, _Out_ H *), call_fd(H, _Out_ int *),
  call_hold(H, _Out_ H *), call_finish(H, int64, H), uint64 hold_token(H), int64 hold_valid_for(H),
  void hold_free(H), void call_free(H), void client_close(H)`.matchAll(/(\w+ )?(\w+)\((.*?)\)/g)) {
  const native = library.func(`${type ?? 'int '}zklock_${name}(${parameters})`)
  zk[name] = (...args) => {
    const output = [null] // for what the function writes to its last parameter
    const result = native(...args, output)
    if (!type && result !== 0) throw Object.assign(new Error(zk.last_error()), { status: result })
    return output[0] ?? result
  }
}

// Waits in Node's event loop until a call has ended, takes its result, and frees it.
function finish(call, take = () => zk.call_finish(call, 0, null)) {
  const ended = new Promise(resolve => {
    const watch = koffi.node.poll(zk.call_fd(call), () => resolve(watch.close()))
  })
  return ended.then(() => take(call)).finally(() => zk.call_free(call))
}

// Holds a lock during the work, which gets a signal to stop if the lock is lost.
async function withLock(lock, timeout, work) {
  const hold = await finish(zk.acquire_start(lock, timeout), zk.call_hold)
  const lost = new AbortController()
  try {
    finish(zk.hold_wait_lost_start(hold), () => lost.abort()) // a release ends this call, too
    return await work(hold, lost.signal)
  } finally {
    await finish(zk.release_start(hold)).finally(() => zk.hold_free(hold)) // throws if the lock was lost
  }
}

const [hosts, path, seconds, workers, ...settings] = process.argv.slice(2)
try {
  if (zk.abi() !== 1) throw new Error('this program is for version 0.1 of libzklock')
  const options = zk.options_new() // like the client and the lock, these live to the end of the program
  for (const setting of settings) zk.options_set(options, ...setting.match(/([^=]*)(?:=(.*))?/s).slice(1))
  const client = zk.client_new_lazy(hosts, options) // the first acquire connects it
  const lock = zk.mutex_new(client, path, null)
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))
  process.once('exit', () => zk.client_close(client)) // ends all waits, and leaves no node behind
  const report = async (hold, lost) => {
    console.log(`acquired: token ${zk.hold_token(hold)}, valid for ${zk.hold_valid_for(hold)} ms`)
    await sleep(seconds * 1000, null, { signal: lost })
  }
  const worker = () => withLock(lock, 3000, report).then(() => console.log('released'))
  await Promise.all(Array.from({ length: workers }, worker))
} catch (error) {
  console.log(`failed: ${error.message}`)
  process.exit(1)
}
