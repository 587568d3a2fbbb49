//! Networks of the shape of wildbg's: 202 inputs, hidden layers of 300, 250 and 200, six probabilities. The weights are made up.

use criterion::{Criterion, criterion_group, criterion_main};
use tract_onnx::pb::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TypeProto, ValueInfoProto,
};
use tract_onnx::pb::{attribute_proto::AttributeType, tensor_proto::DataType, type_proto};
use tract_onnx::prelude::*;
use tract_onnx::tract_hir::shapefactoid;

const WIDTHS: [usize; 5] = [202, 300, 250, 200, 6];

fn named(name: &str) -> ValueInfoProto {
    let tensor = type_proto::Tensor { elem_type: DataType::Float as i32, shape: None };
    let r#type = Some(TypeProto { value: Some(type_proto::Value::TensorType(tensor)), ..Default::default() });
    ValueInfoProto { name: name.into(), r#type, ..Default::default() }
}

/// Between -0.1 and 0.1.
fn tensor(name: String, dims: &[usize]) -> TensorProto {
    let mut state = 1_u32;
    let mut value = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32 * 0.2 - 0.1
    };
    let float_data = (0..dims.iter().product()).map(|_| value()).collect();
    TensorProto {
        name,
        dims: dims.iter().map(|size| *size as i64).collect(),
        data_type: DataType::Float as i32,
        float_data,
        ..Default::default()
    }
}

/// For any number of positions at once.
fn network(activation: &str) -> TractResult<TypedRunnableModel<TypedModel>> {
    let mut graph =
        GraphProto { input: vec![named("positions")], output: vec![named("probabilities")], ..Default::default() };
    let mut last = "positions".to_string();
    for (layer, widths) in WIDTHS.windows(2).enumerate() {
        let (weight, bias, sum) = (format!("weight{layer}"), format!("bias{layer}"), format!("sum{layer}"));
        graph.initializer.push(tensor(weight.clone(), &[widths[1], widths[0]]));
        graph.initializer.push(tensor(bias.clone(), &[widths[1]]));
        let transposed =
            AttributeProto { name: "transB".into(), r#type: AttributeType::Int as i32, i: 1, ..Default::default() };
        let input = vec![last, weight, bias];
        graph.node.push(NodeProto {
            op_type: "Gemm".into(),
            input,
            output: vec![sum.clone()],
            attribute: vec![transposed],
            ..Default::default()
        });
        let (op_type, output) = if layer + 2 < WIDTHS.len() {
            (activation, format!("layer{layer}"))
        } else {
            ("Softmax", "probabilities".into())
        };
        graph.node.push(NodeProto {
            op_type: op_type.into(),
            input: vec![sum],
            output: vec![output.clone()],
            ..Default::default()
        });
        last = output;
    }
    let opset_import = vec![OperatorSetIdProto { version: 14, ..Default::default() }];
    let model = onnx().model_for_proto_model(&ModelProto { graph: Some(graph), opset_import, ..Default::default() })?;
    let many = model.sym("N");
    model
        .with_input_fact(0, InferenceFact::dt_shape(f32::datum_type(), shapefactoid![many, (WIDTHS[0])]))?
        .into_optimized()?
        .into_runnable()
}

/// Positions as after one move: 2 to 25 in a batch.
fn infer(criterion: &mut Criterion) {
    for (name, activation) in [("contact", "HardSigmoid"), ("race", "Relu")] {
        let network = network(activation).unwrap();
        let batches: Vec<Tensor> = (2..26)
            .map(|count| {
                tract_ndarray::Array2::from_shape_fn((count, WIDTHS[0]), |(row, column)| {
                    ((row + column) % 7) as f32 / 7.0
                })
                .into()
            })
            .collect();
        criterion.bench_function(name, |bench| {
            bench.iter(|| {
                batches.iter().map(|batch| network.run(tvec!(batch.clone().into())).unwrap().len()).sum::<usize>()
            });
        });
    }
}

criterion_group!(benches, infer);
criterion_main!(benches);
