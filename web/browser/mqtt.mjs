// MQTT.js, as it comes, against the gateway: node mqtt.mjs URL VERSION. Prints what arrived, as JSON.
import mqtt from 'mqtt';

const [url, version] = process.argv.slice(2);
const client = await mqtt.connectAsync(url, { protocolVersion: Number(version), clientId: `mqttjs-${version}`, reconnectPeriod: 0 });
const got = [];
const all = new Promise((done) => client.on('message', (topic, payload) => { if (got.push([topic, payload.toString()]) === 3) done(); }));
const granted = await client.subscribeAsync(['$filter/wind > 90', 'plain/+']);
await client.publishAsync('storm/1', JSON.stringify({ wind: 80 }));
await client.publishAsync('storm/2', JSON.stringify({ wind: 120 }), { qos: 1 });
await client.publishAsync('plain/a', 'hello');
await client.publishAsync('plain/b', '42', { qos: 1 });
await all;
await client.unsubscribeAsync('plain/+');
console.log(JSON.stringify({ granted: granted.map((each) => each.qos), got }));
await client.endAsync();
