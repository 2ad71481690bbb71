// The openai package as people use it; prints what it saw as one JSON line.
import { createRequire } from "node:module";

const require = createRequire(process.env.OPENAI_MODULE + "/package.json");
const { OpenAI } = require("openai");

const client = new OpenAI({ maxRetries: 0 });
const models = (await client.models.list()).data;
const question = {
  model: models[0].id,
  temperature: 0,
  max_tokens: 8,
  messages: [{ role: "user", content: "Say hello in one short sentence." }],
};
const whole = await client.chat.completions.create(question);
let text = "";
let usage = null;
const stream = await client.chat.completions.create({
  ...question,
  stream: true,
  stream_options: { include_usage: true },
});
for await (const chunk of stream) {
  text += chunk.choices[0]?.delta?.content ?? "";
  usage = chunk.usage ?? usage;
}
let status = 200;
try {
  await client.chat.completions.create({ ...question, temperature: -1 });
} catch (error) {
  status = error.status;
}
console.log(
  JSON.stringify({
    models: models.length,
    text: whole.choices[0].message.content,
    prompt_tokens: whole.usage.prompt_tokens,
    stream_text: text,
    stream_usage_prompt_tokens: usage.prompt_tokens,
    wrong_field_status: status,
  }),
);
