//! What an int8 KV cache costs: the divergence of its predictions from those with f16, over a text.
//!
//! `cargo run --release -p mote-model --example kv_quality -- BUNDLE TEXT_FILE [TOKENS]`
#![expect(clippy::print_stdout, reason = "an example shows its result on the terminal")]

use std::ops::ControlFlow;

use mote_model::{Bundle, Error, KvKind, LoadOptions, Model};

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [dir, file, rest @ ..] = arguments.as_slice() else {
        println!("usage: kv_quality BUNDLE TEXT_FILE [TOKENS]");
        return Ok(());
    };
    let n_tokens = rest.first().and_then(|text| text.parse().ok()).unwrap_or(512);
    let load = |kv| {
        let options = LoadOptions { kv: Some(kv), context: n_tokens, ..LoadOptions::default() };
        Model::load(Bundle::open(dir.as_ref())?, &options)
    };
    let (halves, bytes) = (load(KvKind::F16)?, load(KvKind::Int8)?);
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let ids = halves.tokenizer().encode(&text)?;
    let ids = &ids[..ids.len().min(n_tokens)];
    let (mut a, mut b) = (halves.conversation()?, bytes.conversation()?);
    let (mut divergence, mut worst, mut n_same, mut loss) = (0.0, 0.0f64, 0, [0.0; 2]);
    for (at, id) in ids.iter().enumerate() {
        for conversation in [&mut a, &mut b] {
            conversation.prefill(&[*id], &mut |_, _| ControlFlow::Continue(()))?;
        }
        let (p, q) = (log_softmax(a.logits()?), log_softmax(b.logits()?));
        let kl: f64 = p.iter().zip(&q).map(|(p, q)| p.exp() * (p - q)).sum();
        divergence += kl;
        worst = worst.max(kl);
        n_same += usize::from(likeliest(&p) == likeliest(&q));
        if let Some(next) = ids.get(at + 1) {
            loss[0] -= p[*next as usize];
            loss[1] -= q[*next as usize];
        }
    }
    let n = ids.len() as f64;
    println!("{} tokens: mean KL {:.2e}, largest {worst:.2e}", ids.len(), divergence / n);
    println!("the same likeliest token: {:.2}%", 100.0 * n_same as f64 / n);
    println!("perplexity: f16 {:.4}, int8 {:.4}", (loss[0] / (n - 1.0)).exp(), (loss[1] / (n - 1.0)).exp());
    Ok(())
}

fn log_softmax(logits: &[f32]) -> Vec<f64> {
    let max = f64::from(logits.iter().copied().fold(f32::MIN, f32::max));
    let total: f64 = logits.iter().map(|logit| (f64::from(*logit) - max).exp()).sum();
    logits.iter().map(|logit| f64::from(*logit) - max - total.ln()).collect()
}

fn likeliest(logprobs: &[f64]) -> Option<usize> {
    (0..logprobs.len()).max_by(|a, b| logprobs[*a].total_cmp(&logprobs[*b]))
}
