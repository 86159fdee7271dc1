//! Passwords never enter the log: they are hashed here, slowly on purpose.

use super::Office;
use super::recipe::decode;
use api::Error;
use api::etcdserverpb::{AuthUserAddRequest, AuthUserChangePasswordRequest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use prost::Message;

const USER_ADD_FIELD: u32 = 1100;
const CHANGE_PASSWORD_FIELD: u32 = 1103;
/// bcrypt looks at no more, so more is refused rather than cut.
const PASSWORD_BYTES_MAX: usize = 72;

impl Office {
    pub(super) async fn user_add(&self, data: Bytes) -> Result<Bytes, Error> {
        let mut request: AuthUserAddRequest = decode(data)?;
        let no_password = request.options.as_ref().is_some_and(|options| options.no_password);
        if !no_password {
            request.hashed_password = self.hash_password(&request.password).await?;
        }
        request.password.clear();
        let reply = self.propose(USER_ADD_FIELD, &request.encode_to_vec()).await?;
        Ok(self.with_header(reply.revision, &reply.body))
    }

    pub(super) async fn user_change_password(&self, data: Bytes) -> Result<Bytes, Error> {
        let mut request: AuthUserChangePasswordRequest = decode(data)?;
        if !request.password.is_empty() {
            request.hashed_password = self.hash_password(&request.password).await?;
        }
        request.password.clear();
        let reply = self.propose(CHANGE_PASSWORD_FIELD, &request.encode_to_vec()).await?;
        Ok(self.with_header(reply.revision, &reply.body))
    }

    async fn hash_password(&self, password: &str) -> Result<String, Error> {
        if password.len() > PASSWORD_BYTES_MAX {
            return Err(Error::PASSWORD_TOO_LONG);
        }
        let (password, cost) = (password.to_owned(), self.config().bcrypt_cost);
        let hashed = self.on_own_thread(move || bcrypt::hash(password, cost)).await?;
        let hashed = hashed.map_err(|e| Error::with_text(api::Code::Internal, e.to_string()))?;
        Ok(STANDARD.encode(hashed))
    }
}
