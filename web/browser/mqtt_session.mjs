// MQTT.js, as it comes, leaves a session and takes it up: node mqtt_session.mjs URL VERSION. Prints what waited, as JSON.
import mqtt from 'mqtt';

const [url, version] = process.argv.slice(2);
const kept = { protocolVersion: Number(version), clientId: 'ship', clean: false, reconnectPeriod: 0, ...(version === '5' ? { properties: { sessionExpiryInterval: 600 } } : {}) };
let ship = await mqtt.connectAsync(url, kept);
const granted = await ship.subscribeAsync('a/#', { qos: 1 });
await ship.endAsync();
const desk = await mqtt.connectAsync(url, { protocolVersion: Number(version), clientId: 'desk', reconnectPeriod: 0 });
for (const text of ['one', 'two']) await desk.publishAsync('a/b', text, { qos: 1 });
const got = [];
ship = mqtt.connect(url, kept);
const present = await new Promise((done, fail) => {
  ship.on('error', fail);
  ship.once('connect', (packet) => { ship.present = packet.sessionPresent; });
  ship.on('message', (topic, payload, packet) => { if (got.push([topic, payload.toString(), packet.qos]) === 2) done(ship.present); });
});
console.log(JSON.stringify({ granted: granted.map((each) => each.qos), present, got }));
await ship.endAsync();
await desk.endAsync();
