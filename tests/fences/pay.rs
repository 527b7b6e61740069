// Cargo.toml: sqlx = { version = "0.8", features = ["postgres", "runtime-tokio"] }
use sqlx::{Connection, PgConnection};
use zklock::fence::{Database, Stamp};
use zklock::{Client, ClientOptions, Hold};

async fn pay(hold: &Hold, database: &mut PgConnection) -> Result<(), Box<dyn std::error::Error>> {
    let stamp = Stamp::of(hold).await?;
    let mut transaction = database.begin().await?;
    let raise = sqlx::query(Database::PostgreSql.raise()).bind(stamp.name()).bind(stamp.ensemble());
    let raised = raise.bind(i64::try_from(stamp.token())?).execute(&mut *transaction).await?;
    if raised.rows_affected() == 0 {
        return Err("refused, a later holder has written".into()); // the transaction is rolled back
    }
    let update = sqlx::query("UPDATE account SET amount = amount + 10 WHERE name = 'anna'");
    update.execute(&mut *transaction).await?;
    Ok(transaction.commit().await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::connect(ClientOptions::new("127.0.0.1:2181")).await?;
    let mut database = PgConnection::connect("postgres:///shop").await?;
    let hold = client.mutex("/locks/account")?.acquire().await?;
    let paid = pay(&hold, &mut database).await;
    hold.release().await?;
    client.close().await;
    paid
}
