"""The openai package as people use it; prints what it saw as one JSON line."""
import json

import openai

client = openai.OpenAI(max_retries=0)
models = client.models.list().data
question = dict(model=models[0].id, temperature=0, max_tokens=8,
                messages=[{"role": "user", "content": "Say hello in one short sentence."}])
whole = client.chat.completions.create(**question)
text, usage = "", None
for chunk in client.chat.completions.create(**question, stream=True,
                                            stream_options={"include_usage": True}):
    if chunk.choices:
        text += chunk.choices[0].delta.content or ""
    usage = chunk.usage or usage
try:
    client.chat.completions.create(**{**question, "temperature": -1})
    status = 200
except openai.APIStatusError as error:
    status = error.status_code
print(json.dumps({
    "models": len(models),
    "text": whole.choices[0].message.content,
    "prompt_tokens": whole.usage.prompt_tokens,
    "stream_text": text,
    "stream_usage_prompt_tokens": usage.prompt_tokens,
    "wrong_field_status": status,
}))
