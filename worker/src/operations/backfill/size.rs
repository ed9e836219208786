//! How large SQL may be.

use std::thread::Builder;

use lance::deps::datafusion::sql::sqlparser::dialect::GenericDialect;
use lance::deps::datafusion::sql::sqlparser::keywords::Keyword;
use lance::deps::datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use lance_maintenance_api::{ErrorName, TaskError};
use tracing::warn;

/// Operators that SQL may have. What compiles and computes an expression calls itself for each link of a
/// chain (`a + a + …`), and the process ends where its stack does. Measured in a build without optimizations,
/// where frames are largest: an ordinary thread's ends while 400 links are compiled, and does not yet while
/// 1000 are computed. What is nested otherwise the parser limits.
pub const MOST_OPERATORS: usize = 400;

/// The stack, in bytes, of what compiles: 1000 links took no more. It is only taken as far as it is used.
const STACK: usize = 256 << 20;

/// Does something that calls itself for each link of a chain.
pub fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, TaskError> {
    let failed = |text: &str| TaskError::new(ErrorName::InternalError, text);
    std::thread::scope(|scope| {
        let thread = Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        let thread = thread.map_err(|error| {
            warn!(%error, "no thread to compile with");
            failed("SQL can't be compiled just now; the worker's log has more.")
        })?;
        let broken = "Compiling the SQL broke off unexpectedly; the worker's log has more.";
        thread.join().map_err(|_| failed(broken))
    })
}

/// The operators of the SQL, signs and words: everything that is neither a name nor a value nor between
/// them. A name that is a word of SQL as well counts. None is counted of what can't be told apart, which
/// does not compile.
pub fn operators(text: &str) -> usize {
    let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize();
    tokens.iter().flatten().filter(|of| is_operator(of)).count()
}

fn is_operator(token: &Token) -> bool {
    match token {
        Token::Whitespace(_)
        | Token::Comma
        | Token::LParen
        | Token::RParen
        | Token::RBracket
        | Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::HexStringLiteral(_) => false,
        Token::Word(word) => !matches!(
            word.keyword,
            Keyword::NoKeyword
                | Keyword::CASE
                | Keyword::WHEN
                | Keyword::THEN
                | Keyword::ELSE
                | Keyword::END
                | Keyword::NULL
                | Keyword::TRUE
                | Keyword::FALSE
        ),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_no_operators() {
        let cases = [
            ("", 0),
            ("a", 0),
            ("a + 1", 1),
            ("a -- + b", 0),
            ("foo(`a b`) || 'x + y' || X'ff'", 2),
            ("a IN (1, 2, 'three', 4)", 1),
            ("CASE WHEN a = 1 THEN 2 WHEN a = 2 THEN 3 ELSE NULL END", 2),
            ("a.b[1] AND NOT c", 4),
            ("- - a", 2),
            ("'no end + + +", 0),
        ];
        for (text, expected) in cases {
            assert_eq!(operators(text), expected, "{text}");
        }
    }
}
