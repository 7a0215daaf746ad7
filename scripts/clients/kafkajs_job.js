// A group job with kafkajs: produce, consume as a group of two, commit, join again, look at the offsets.
const { Kafka, logLevel, Partitioners } = require('kafkajs')
const [address, name] = process.argv.slice(2)
const kafka = new Kafka({ brokers: [address], clientId: 'job', logLevel: logLevel.ERROR })

function check(ok, what) {
  if (!ok) { console.error('kafkajs: ' + what); process.exit(1) }
}
setTimeout(() => check(false, 'not done after 120 s'), 120000).unref()

async function produce(first, last) {
  const p = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await p.connect()
  const messages = []
  for (let i = first; i < last; i++) messages.push({ value: String(i), partition: i % 4 })
  await p.send({ topic: name, messages })
  await p.disconnect()
}

async function consume(members, first, until) {
  const seen = []
  const consumers = []
  let enough
  const done = new Promise(resolve => { enough = resolve })
  const shared = []
  for (let i = 0; i < members; i++) {
    const c = kafka.consumer({ groupId: name })
    consumers.push(c)
    shared.push(new Promise(resolve => c.on(c.events.GROUP_JOIN, e => {
      if ((e.payload.memberAssignment[name] || []).length === 4 / members) resolve()
    })))
    await c.connect()
    await c.subscribe({ topic: name, fromBeginning: true })
    await c.run({ autoCommit: false, eachBatch: async ({ batch, resolveOffset }) => {
      for (const m of batch.messages) { seen.push(Number(m.value)); resolveOffset(m.offset) }
      await c.commitOffsets([{ topic: name, partition: batch.partition, offset: String(Number(batch.lastOffset()) + 1) }])
      if (new Set(seen).size >= until) enough()
    } })
  }
  await Promise.all(shared)
  await produce(first, first + until)
  await done
  for (const c of consumers) await c.disconnect()
  return seen.sort((a, b) => a - b)
}

async function job() {
  const admin = kafka.admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic: name, numPartitions: 4, replicationFactor: 1 }] })
  await consume(2, 0, 1000)
  const seen = await consume(1, 1000, 100)
  check(seen.length === 100 && seen[0] === 1000, `read again: ${seen.slice(0, 3)}`)
  const [of] = await admin.fetchOffsets({ groupId: name, topics: [name] })
  const total = of.partitions.reduce((sum, p) => sum + Number(p.offset), 0)
  check(total === 1100, `offsets ${JSON.stringify(of)}`)
  const { groups } = await admin.listGroups()
  check(groups.some(g => g.groupId === name), 'the group is not listed')
  await admin.disconnect()
}
job().then(() => { console.log('kafkajs: ok'); process.exit(0) }, err => check(false, err.stack))
