//! A lane has three tasks: one sends small messages, one forwards them, one receives them. The report has ten senders, which with two
//! cores take as long as before; so there is also one lane whose queues hold a single message.

use criterion::{Criterion, criterion_group, criterion_main};
use tokio::sync::mpsc;

const MESSAGES: usize = 2000;

async fn lane(queued: usize) -> usize {
    let (sender, mut queue) = mpsc::channel(queued);
    let (forwarder, mut arrived) = mpsc::channel(queued);
    tokio::spawn(async move {
        for _ in 0..MESSAGES {
            sender.send(vec![0_u8; 64]).await.unwrap();
        }
    });
    tokio::spawn(async move {
        while let Some(message) = queue.recv().await {
            forwarder.send(message).await.unwrap();
        }
    });
    let mut count = 0;
    while arrived.recv().await.is_some() {
        count += 1;
    }
    count
}

fn forward(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    for (name, lanes, queued) in [("ten", 10, 512), ("one", 1, 1)] {
        criterion.bench_function(name, |bench| {
            bench.iter(|| {
                let lanes: Vec<_> = (0..lanes).map(|_| runtime.spawn(lane(queued))).collect();
                for lane in lanes {
                    assert_eq!(runtime.block_on(lane).unwrap(), MESSAGES);
                }
            });
        });
    }
}

criterion_group!(benches, forward);
criterion_main!(benches);
